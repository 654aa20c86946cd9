// Field schemas that several operations share.

import * as v from 'valibot';
import { idPattern } from '../../base/ids.ts';

export const count = (most: number) =>
  v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(most));
export const milliseconds = count(Number.MAX_SAFE_INTEGER);
export const position = count(2 ** 48 - 1);
const noNul = v.check((text: string) => !text.includes('\0'), 'contains a NUL byte');
export const text = v.pipe(v.string(), noNul);
export const shortText = v.pipe(text, v.minLength(1), v.maxLength(512));
export const id = v.pipe(
  v.string(),
  v.regex(idPattern, 'must be 1 to 64 letters, digits, "-" or "_"'),
);
export const size = v.object({
  cols: v.pipe(count(1000), v.minValue(1)),
  rows: v.pipe(count(1000), v.minValue(1)),
});
