// What a page may say on its WebSocket.

import * as v from 'valibot';
import { HoldfastError } from '../../../protocol/errors.ts';
import { inputProblem } from '../../../protocol/input-problem.ts';
import { count, position } from '../../../protocol/schema/fields.ts';

const channel = v.pipe(count(0xffffff), v.minValue(1));
const target = { owner: v.string(), id: v.string() };
/** Repeated in the answer. */
const ask = count(2 ** 48);

const message = v.variant('type', [
  v.object({ type: v.literal('hello'), token: v.optional(v.pipe(v.string(), v.maxLength(512))) }),
  v.object({
    type: v.literal('list'),
    channel,
    epoch: v.optional(v.pipe(v.string(), v.maxLength(64))),
    after: v.optional(position),
  }),
  v.object({ type: v.literal('completions'), channel, after: v.optional(position) }),
  v.object({
    type: v.literal('attention'),
    channel,
    quietMs: v.optional(v.pipe(count(2 ** 31), v.minValue(1))),
  }),
  v.object({ type: v.literal('log'), channel, ...target, offset: position }),
  v.object({ type: v.literal('screen'), channel, ...target, after: v.optional(position) }),
  v.object({
    type: v.literal('thumbnail'),
    channel,
    ...target,
    theme: v.picklist(['dark', 'light']),
    hz: v.optional(v.pipe(count(4), v.minValue(1))),
  }),
  v.object({ type: v.literal('credit'), channel, bytes: count(16 * 1024 * 1024) }),
  v.object({ type: v.literal('drop'), channel }),
  v.object({ type: v.literal('paint'), ask, ...target, at: position }),
  v.object({ type: v.literal('hold'), ask, ...target, steal: v.optional(v.boolean()) }),
  v.object({ type: v.literal('release'), ask, ...target }),
  v.object({
    type: v.literal('type'),
    ask,
    ...target,
    data: v.pipe(v.string(), v.minLength(1), v.maxLength(64 * 1024)),
  }),
  v.object({ type: v.literal('resize'), ask, ...target, cols: count(1000), rows: count(1000) }),
]);

export type WatchMessage = v.InferOutput<typeof message>;

export function parseWatchMessage(text: string): WatchMessage {
  const parsed = v.safeParse(message, parse(text), { abortEarly: true });
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  const field = v.getDotPath(issue);
  const problem = inputProblem(issue);
  throw new HoldfastError('invalid_input', field === null ? problem : `"${field}": ${problem}`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new HoldfastError('invalid_input', 'A message is a JSON object.');
  }
}
