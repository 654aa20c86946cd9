// The streams of JetStream that a fleet uses: a constant number, whatever the number of hosts and subscribers. Nothing in
// them is precious: the hosts can give it again.

import { createHash } from 'node:crypto';
import type { StreamConfig } from '@nats-io/jetstream';

export const LEDGER = 'HF_LEDGER';
export const CLAIMS = 'HF_CLAIMS';
export const KEPT = 'HF_KEPT';

export type StreamName = typeof LEDGER | typeof CLAIMS | typeof KEPT;

const MiB = 1024 * 1024;
const DAY_NS = 24 * 60 * 60 * 1e9;

/** One message per subject, which the next one replaces. */
const newest = { max_msgs_per_subject: 1, allow_direct: true, deny_delete: true } as const;

/** max_age in nanoseconds, as JetStream wants it. The oldest messages go first. */
export const streams: Readonly<Record<StreamName, Partial<StreamConfig>>> = {
  [LEDGER]: {
    subjects: ['hf.led.*'],
    max_age: 7 * DAY_NS,
    max_bytes: 256 * MiB,
    allow_direct: true,
    deny_delete: true,
    deny_purge: true,
  },
  [CLAIMS]: { ...newest, subjects: ['hf.claim.>'], max_age: 7 * DAY_NS, max_bytes: 64 * MiB },
  [KEPT]: { ...newest, subjects: ['hf.kept.>'], max_bytes: 64 * MiB },
};

export const ledgerSubjects = {
  of: (host: string) => `hf.led.${host}`,
  claim: (kind: 'key' | 'id', owner: string, text: string) =>
    `hf.claim.${kind}.${hashed(owner)}.${hashed(text)}`,
  kept: (kind: 'place' | 'ack', owner: string, text: string) =>
    `hf.kept.${kind}.${hashed(owner)}.${hashed(text)}`,
} as const;

/** Owners, keys and names of workspaces are no tokens of a subject. */
function hashed(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

/** "hf.led.HOST" */
export function hostOfLedger(subject: string): string {
  return subject.slice('hf.led.'.length);
}

export interface Epoch {
  /** Differs for a stream that was made anew: its numbers begin again. */
  readonly name: string;
  /** When the stream was made, by the clock of the gateway that made it. */
  readonly atMs: number;
}

export function newEpoch(atMs: number, random: string): Epoch {
  return { name: `${atMs}-${random.slice(0, 8)}`, atMs };
}

export function readEpoch(description = ''): Epoch {
  const name = /^Holdfast (\S+)$/.exec(description)?.[1] ?? '0-unknown';
  return { name, atMs: Number(/^\d+/.exec(name)?.[0] ?? 0) };
}

export function describeEpoch({ name }: Epoch): string {
  return `Holdfast ${name}`;
}
