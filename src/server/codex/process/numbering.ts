// The sequence numbers of codex count output, exit and close from 1 without holes. This file turns a journal page into
// those events; a missing stretch is an event too.

import type { Stream } from '../../../protocol/event.ts';
import type { Page } from '../../../protocol/host-api.ts';
import type { Outcome } from '../../../protocol/process.ts';
import { decodeRecords } from '../../../protocol/record.ts';

export type NumberedEvent =
  | {
      readonly kind: 'output';
      readonly seq: number;
      readonly stream: CodexStream;
      readonly data: Buffer;
    }
  | { readonly kind: 'exited'; readonly seq: number; readonly outcome: Outcome }
  | { readonly kind: 'closed'; readonly seq: number }
  | Missing;

export interface Missing {
  readonly kind: 'missing';
  readonly fromSeq: number;
  readonly toSeq: number;
  readonly bytes: number;
}

type CodexStream = 'stdout' | 'stderr' | 'pty';

/** `offset`: output bytes before the page, to compute how many are missing. */
export function* numberEvents(page: Page, offset: number | undefined): Generator<NumberedEvent> {
  const { uncounted, missed } = page;
  if (!uncounted) throw new Error('the page was requested without its uncounted events');
  let skipped = 0;
  let next = uncounted.after - uncounted.before + 1;
  let knownOffset = offset;
  for (const event of decodeRecords(page.records)) {
    while ((uncounted.seqs[skipped] ?? Infinity) < event.seq) skipped += 1;
    const isUncounted = uncounted.seqs[skipped] === event.seq;
    const seq = event.seq - uncounted.before - skipped;
    const isGap = event.kind === 'gap';
    // A gap has the number of the last event that it replaces.
    const firstThere = isGap && !isUncounted ? seq + 1 : seq;
    if (firstThere > next) {
      const end = isGap ? event.offset + event.body.bytes : event.offset;
      const bytes =
        knownOffset === undefined ? (missed?.bytes ?? 0) : Math.max(0, end - knownOffset);
      yield { kind: 'missing', fromSeq: next, toSeq: firstThere - 1, bytes };
      next = firstThere;
      knownOffset = end;
    }
    if (isUncounted || isGap) continue;
    if (event.kind === 'output') {
      knownOffset = event.offset + event.data.length;
      yield { kind: 'output', seq, stream: streamOf(event.stream), data: event.data };
    } else if (event.kind === 'exited') yield { kind: 'exited', seq, outcome: event.body.outcome };
    else if (event.kind === 'closed') yield { kind: 'closed', seq };
    next = seq + 1;
  }
}

function streamOf(stream: Stream): CodexStream {
  return stream === 'merged' ? 'stdout' : stream;
}

/** The text in place of the first missing number; the others are empty. */
export function missingText({ bytes }: Pick<Missing, 'bytes'>): string {
  return `\n[holdfast: ${bytes} bytes of output are not here]\n`;
}

const SIGNAL_BASE = 128;

export function codexExitCode(
  outcome: Outcome | undefined,
  signals: Readonly<Record<string, number>>,
): number {
  if (outcome?.kind === 'exit') return outcome.code;
  if (outcome === undefined || outcome.kind === 'lost') return -1;
  if (outcome.kind === 'timeout' && outcome.code !== undefined) return outcome.code;
  return SIGNAL_BASE + (signals[outcome.signal ?? ''] ?? 0);
}
