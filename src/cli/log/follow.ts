// Follows the events of a process in order, page by page, with long polls.

import { decodeRecords } from '../../protocol/record.ts';
import type { ProcessEvent, Stream } from '../../protocol/event.ts';
import { followEvents, type Position } from '../../base/follow-events.ts';
import type { Missed, Page } from '../../protocol/host-api.ts';
import { PACE_BYTES } from '../../protocol/limits.ts';
import type { Outcome, ProcessInfo } from '../../protocol/process.ts';
import type { Caller } from '../caller.ts';
import type { Output } from '../output/output.ts';
import { Pacing } from './reader-backpressure.ts';

export interface FollowOptions {
  /** now: what is stored. exit: until the root process exited. end: until all output is closed. */
  readonly until: 'now' | 'exit' | 'end';
  readonly after?: number;
  /** Output bytes before that. */
  readonly offset?: number;
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal;
  /** Backpressure: the process waits for this reader, as a pipe would make it. */
  readonly paced?: true;
  readonly event: (event: ProcessEvent) => Promise<void>;
  readonly missed: (missed: Missed) => Promise<void>;
}

export interface Followed {
  /** Undefined when the exit was not reached. */
  readonly outcome: Outcome | undefined;
  readonly timedOut: boolean;
}

const FOR_EVER_MS = Number.MAX_SAFE_INTEGER;
const PAGE_BYTES = 1024 * 1024;

export async function follow(
  caller: Caller,
  process: Pick<ProcessInfo, 'id' | 'owner'>,
  options: FollowOptions,
): Promise<Followed> {
  const { until, timeoutMs, signal } = options;
  const deadline = timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
  const pace = options.paced ? new Pacing(caller, process) : undefined;
  const { after = 0, offset = 0 } = options;
  let leftMs = FOR_EVER_MS;
  let outcome: Outcome | undefined;
  let goal: number | undefined;
  const read = (position: Position): Promise<Page> => {
    if (deadline !== undefined) leftMs = Math.max(0, Math.ceil(deadline - performance.now()));
    const wait = until === 'now' ? {} : { waitMs: leftMs };
    const asked = { id: process.id, ...position, maxBytes: PAGE_BYTES, ...wait };
    const params = pace ? { ...asked, paceBytes: PACE_BYTES, reader: pace.reader } : asked;
    return caller.ask((host) => host.read(process.owner, params, signal));
  };
  try {
    for await (const page of followEvents(read, { after, offset })) {
      pace?.delivers(page);
      if (page.missed) await options.missed(page.missed);
      for (const event of decodeRecords(page.records)) {
        await options.event(event);
        if (event.kind === 'exited') outcome = event.body.outcome;
      }
      goal ??= page.seq;
      const done =
        page.end ||
        (until === 'exit' && outcome !== undefined) ||
        (until === 'now' && page.nextAfter >= goal);
      const timedOut = !done && until !== 'now' && leftMs === 0;
      if (done || timedOut) return { outcome, timedOut };
    }
    return { outcome, timedOut: false };
  } finally {
    await pace?.over();
  }
}

/** Where the log of a process goes. */
export interface LogTarget {
  output(stream: Stream, bytes: Buffer): Promise<void>;
  /** A message about the log, such as a gap. */
  note(text: string): Promise<void>;
}

/** Passes on output, and reports where some is missing. */
export function passTo(target: LogTarget): Pick<FollowOptions, 'event' | 'missed'> {
  return {
    async event(event) {
      if (event.kind === 'output') await target.output(event.stream, event.data);
      else if (event.kind === 'gap')
        await target.note(gapWords(event.body.bytes, event.body.reason));
    },
    missed: ({ bytes, reason }) => target.note(gapWords(bytes, missedWords[reason])),
  };
}

/** stderr goes to stderr, everything else to stdout. */
export function targetOf(out: Output): LogTarget {
  return {
    output: (stream, bytes) => out.bytes(stream === 'stderr' ? 'stderr' : 'stdout', bytes),
    note: (text) => out.note(text),
  };
}

const missedWords: Readonly<Record<Missed['reason'], string>> = {
  limit: 'dropped by the size limit',
  storage: 'the disk refused them',
  damage: 'damaged on disk',
};

export function gapWords(bytes: number, reason: string): string {
  return `${bytes} bytes of output are missing here: ${reason}.`;
}

export function missedReason(missed: Missed): string {
  return missedWords[missed.reason];
}
