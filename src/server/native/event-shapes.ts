// The schemas of events in native answers, and of their parts.

import * as v from 'valibot';
import { streams } from '../../protocol/event.ts';
import type { Outcome, TerminalSize } from '../../protocol/process.ts';
import type { NativeEvent } from './events.ts';

/** Checks at compile time that a schema describes this type. */
export const shape = <T>(schema: v.GenericSchema<T>): v.GenericSchema<T> => schema;

export const whole = v.pipe(v.number(), v.integer(), v.minValue(0));
export const text = v.string();
export const size = shape<TerminalSize>(v.object({ cols: whole, rows: whole }));
export const outcome = shape<Outcome>(
  v.variant('kind', [
    v.object({ kind: v.literal('exit'), code: whole }),
    v.object({ kind: v.literal('signal'), signal: text, by: text }),
    v.object({
      kind: v.literal('timeout'),
      afterMs: whole,
      signal: v.exactOptional(text),
      code: v.exactOptional(whole),
    }),
    v.object({ kind: v.literal('oom'), signal: text }),
    v.object({ kind: v.literal('lost'), reason: text }),
  ]),
);

const stamp = { seq: whole, offset: whole, atUs: whole, wallMs: whole };
const signalBody = { signal: text, by: text, escapees: v.exactOptional(v.array(whole)) };
const inputBody = {
  bytes: whole,
  data: v.exactOptional(text),
  writeId: v.exactOptional(text),
  eof: v.exactOptional(v.literal(true)),
  as: v.exactOptional(v.picklist(['text', 'paste', 'keys'])),
  keys: v.exactOptional(v.array(text)),
  more: v.exactOptional(v.literal(true)),
};

export const event = shape<NativeEvent>(
  v.variant('kind', [
    v.object({ ...stamp, kind: v.literal('started'), body: v.looseObject({ pid: whole }) }),
    v.object({
      ...stamp,
      kind: v.literal('output'),
      stream: v.picklist(streams),
      text: v.exactOptional(text),
      base64: v.exactOptional(text),
    }),
    v.object({ ...stamp, kind: v.literal('input'), body: v.object(inputBody) }),
    v.object({ ...stamp, kind: v.literal('resize'), body: size }),
    v.object({ ...stamp, kind: v.literal('signal'), body: v.object(signalBody) }),
    v.object({ ...stamp, kind: v.literal('note'), body: v.looseObject({}) }),
    v.object({ ...stamp, kind: v.literal('exited'), body: v.object({ outcome }) }),
    v.object({ ...stamp, kind: v.literal('closed'), body: v.looseObject({ bytes: whole }) }),
    v.object({
      ...stamp,
      kind: v.literal('gap'),
      body: v.object({ fromSeq: whole, bytes: whole, reason: text }),
    }),
  ]),
);
