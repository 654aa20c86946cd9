// The kinds of fields in the inputs and outputs of the tools. Models read the descriptions.

import * as v from 'valibot';

export const anyText = (about: string) => v.pipe(v.string(), v.description(about));
export const text = (about: string) => v.pipe(v.string(), v.minLength(1), v.description(about));
export const flag = (about: string) => v.optional(v.pipe(v.boolean(), v.description(about)));
export const between = (least: number, most: number, about: string) =>
  v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(most), v.description(about));
export const count = v.pipe(v.number(), v.integer());
export const optionalText = (about: string) => v.optional(anyText(about));
export const optionalCount = (about: string) => v.optional(v.pipe(count, v.description(about)));
