// The messages between gateways and hosts. Each is one frame of the keeper's protocol.

import * as v from 'valibot';
import { HoldfastError, type ErrorShape } from '../../protocol/errors.ts';
import type { Owner } from '../../protocol/host-api.ts';
import type { OperationName } from '../../protocol/operation-names.ts';
import { decodeFrame, encodeFrame, MAX_FRAME_BYTES } from '../../keeper/frames.ts';

/** What a gateway asks of a member beyond the operations of a host: for the archive. All of them can be repeated. */
const memberOperations = ['journal', 'segment', 'sendSegment', 'archived'] as const;
export type MemberOperation = (typeof memberOperations)[number];
export type FleetOperation = OperationName | MemberOperation;

export function isMemberOperation(op: FleetOperation): op is MemberOperation {
  return (memberOperations as readonly string[]).includes(op);
}

/** A request. Its reply subject names it. */
export interface Ask {
  readonly op: FleetOperation;
  readonly owner: Owner;
  readonly params: unknown;
  /** The server of the host that it is meant for. */
  readonly boot: string;
  /** On that server's monotonic clock: afterwards it is not carried out. */
  readonly untilMs: number;
}

/** About a request under way, which the reply subject names. */
export type Note =
  /** The gateway still waits. */
  | { readonly again: true }
  /** The gateway no longer waits. */
  | { readonly cancel: true }
  /** The gateway has taken parts of the answer: this number of further parts may come. */
  | { readonly credit: number };

export type HostAnswer =
  | { readonly result: unknown }
  | { readonly error: ErrorShape }
  /** It came too late, or for an earlier server: it is not carried out. */
  | { readonly late: true; readonly boot: string }
  /** This server does not have it. done: it has been carried out, and its answer is no longer kept. */
  | { readonly unknown: true; readonly boot: string; readonly done: boolean };

/** Parts of an answer that a host sends without credit. */
export const WINDOW_PARTS = 4;
/** How long after it was sent a request may begin. */
export const TTL_MS = 5000;

const MOST_LABELS = 32;
const MOST_CHARACTERS = 64;

const name = v.pipe(v.string(), v.maxLength(MOST_CHARACTERS));
const number = v.pipe(v.number(), v.finite());

const hostLabels = v.pipe(
  v.record(name, name),
  v.check((labels) => Object.keys(labels).length <= MOST_LABELS, 'are too many'),
);

/** Throws for labels that a gateway would not take. */
export function checkLabels(labels: Readonly<Record<string, string>>): void {
  if (v.is(hostLabels, labels)) return;
  throw new HoldfastError(
    'invalid_input',
    `The labels of a host are at most ${MOST_LABELS}, with at most ${MOST_CHARACTERS} characters in a name and in a value.`,
  );
}

/** What a host says of itself once a second. Its name is that of the subject. */
const beat = v.object({
  v: v.literal(1),
  boot: name,
  version: name,
  /** Its monotonic clock. */
  nowMs: number,
  live: number,
  liveMost: number,
  /** Per processor. */
  load: number,
  cpus: number,
  keeperPid: number,
  drain: v.boolean(),
  labels: hostLabels,
});

export type Beat = v.InferOutput<typeof beat>;

/** Undefined for anything that is no beat. */
export function readBeat(bytes: Buffer): Beat | undefined {
  try {
    const parsed = v.safeParse(beat, JSON.parse(bytes.toString()));
    return parsed.success ? parsed.output : undefined;
  } catch {
    return undefined;
  }
}

export function encodeMessage(message: Ask | Note | HostAnswer): Buffer[] {
  return encodeFrame(message);
}

/** Whether a frame of this length would be refused. Any text is one: its first four letters are such a length. */
export function isTooLong(bytes: Buffer): boolean {
  return bytes.length >= 4 && bytes.readUInt32LE(0) > MAX_FRAME_BYTES;
}

/** Throws for bytes that are no frame. */
export function decodeMessage(bytes: Buffer): unknown {
  return decodeFrame(bytes);
}
