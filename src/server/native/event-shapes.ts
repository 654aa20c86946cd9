// The schemas of events in native answers, of their parts, and of what confines a process.

import * as v from 'valibot';
import type {
  AllMeans,
  Cause,
  Confinement,
  Means,
} from '../../protocol/confinement/confinement.ts';
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
    v.object({
      kind: v.literal('signal'),
      signal: text,
      by: text,
      maybeOom: v.exactOptional(v.literal(true)),
    }),
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

export const cause = shape<Cause>(
  v.variant('kind', [
    v.object({
      kind: v.literal('memory_limit'),
      victims: whole,
      sawBytes: v.exactOptional(whole),
    }),
    v.object({ kind: v.literal('out_of_memory'), victims: whole }),
    v.object({ kind: v.literal('pids_limit'), hits: whole }),
    v.object({ kind: v.literal('cpu_seconds') }),
    v.object({ kind: v.literal('file_bytes') }),
  ]),
);

const limit = v.exactOptional(
  v.object({ limit: v.number(), by: v.picklist(['cgroup', 'watch', 'rlimit']) }),
);
export const confinement = shape<Confinement>(
  v.object({
    memory: limit,
    pids: limit,
    cpus: limit,
    cpuSeconds: limit,
    fileBytes: limit,
    openFiles: limit,
    fs: v.exactOptional(v.object({ by: v.picklist(['bubblewrap', 'landlock']) })),
    net: v.exactOptional(v.object({ by: v.picklist(['netns', 'seccomp']) })),
    privileges: v.exactOptional(v.object({ by: v.literal('no_new_privs') })),
    user: v.exactOptional(v.object({ name: text, by: v.literal('setuid') })),
    hidden: v.exactOptional(v.object({ by: v.picklist(['bubblewrap', 'user']) })),
    none: v.exactOptional(v.literal(true)),
    missing: v.exactOptional(v.array(text)),
  }),
);

const one = shape<Means>(
  v.object({
    by: v.picklist([
      ...(['cgroup', 'watch', 'rlimit', 'bubblewrap', 'landlock'] as const),
      ...(['seccomp', 'setuid', 'no_new_privs', 'no'] as const),
    ]),
    why: v.exactOptional(text),
  }),
);
export const means = shape<AllMeans>(
  v.object({
    memory: one,
    pids: one,
    cpus: one,
    cpuSeconds: one,
    fileBytes: one,
    openFiles: one,
    fs: one,
    hide: one,
    net: one,
    privileges: one,
    user: one,
    hidden: one,
    group: one,
  }),
);
