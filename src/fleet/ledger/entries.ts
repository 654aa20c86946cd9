// The ledger of a fleet: what began, ended, was removed and was archived, in the words of the host that has it. A message is
// a batch of entries of one host.

import * as v from 'valibot';
import type { Completion } from '../../protocol/host-api.ts';

/** What identifies a process in the ledger, and what is reported of it if its host never returns. */
const begun = v.object({
  t: v.literal('begun'),
  id: v.string(),
  owner: v.string(),
  command: v.string(),
  name: v.optional(v.string()),
  labels: v.optional(v.record(v.string(), v.string())),
  startedAtMs: v.number(),
});

const about = { id: v.string(), owner: v.string() };

const entry = v.variant('t', [
  begun,
  /** `n`: its number in the feed of its host. */
  v.object({
    t: v.literal('ended'),
    n: v.number(),
    end: v.looseObject({
      ...about,
      atMs: v.number(),
      outcome: v.looseObject({ kind: v.string() }),
    }),
  }),
  v.object({ t: v.literal('removed'), ...about }),
  /** Its output can be read when the host is gone. */
  v.object({ t: v.literal('archived'), ...about, startedAtMs: v.number() }),
  /** Ends that the host dropped before it could tell them: its feed was full. */
  v.object({ t: v.literal('missed'), count: v.number() }),
  /** What the host has begun is what it has written since its batch `from`. */
  v.object({ t: v.literal('anew'), from: v.number() }),
  /** It has left the fleet; its processes continue. */
  v.object({ t: v.literal('left') }),
  /** It has been forgotten: what it had begun has been reported as lost. */
  v.object({ t: v.literal('gone') }),
]);

const batch = v.object({
  v: v.literal(1),
  /** Who wrote it, and its number with that writer. */
  boot: v.string(),
  n: v.number(),
  entries: v.array(entry),
});

export type Begun = v.InferOutput<typeof begun>;
export type LedgerEntry =
  | Exclude<v.InferOutput<typeof entry>, { t: 'ended' }>
  | { readonly t: 'ended'; readonly n: number; readonly end: Omit<Completion, 'number'> };

export interface Batch {
  readonly v: 1;
  readonly boot: string;
  readonly n: number;
  readonly entries: readonly LedgerEntry[];
}

/** Entries of one message. Their place in it is part of their number. */
export const MOST_ENTRIES = 64;
/** Of one message; a single entry may be larger. */
export const BATCH_BYTES = 256 * 1024;

export function encodeBatch(content: Batch): Buffer {
  return Buffer.from(JSON.stringify(content));
}

/** Undefined for anything that is no batch. */
export function readBatch(bytes: Uint8Array): Batch | undefined {
  try {
    const parsed = v.safeParse(batch, JSON.parse(Buffer.from(bytes).toString()));
    if (!parsed.success || parsed.output.entries.length > MOST_ENTRIES) return undefined;
    return parsed.output as unknown as Batch;
  } catch {
    return undefined;
  }
}

/** Of a process within its host. An id may be used again when its process is gone. */
export function keyOf({ owner, id }: { readonly owner: string; readonly id: string }): string {
  return `${owner.length}:${owner}${id}`;
}
