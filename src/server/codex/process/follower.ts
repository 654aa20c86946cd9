// Notifies one connection of the events of one process, from a position in its journal on. It reads the next page only
// when the client can take it, and meanwhile pauses the process, so that a slow client loses nothing and slows nobody
// else.

import { constants } from 'node:os';
import { base64Length, encodeBase64 } from '../../../base/bytes/base64.ts';
import type { Clock } from '../../../base/clock.ts';
import { randomId } from '../../../base/ids.ts';
import { pause } from '../../../protocol/cancellation.ts';
import { HoldfastError } from '../../../protocol/errors.ts';
import type { HostApi, Owner, Page } from '../../../protocol/host-api.ts';
import { PACE_BYTES, STILL_HERE_MS, UNPACED_BYTES } from '../../../protocol/limits.ts';
import {
  numberEvents,
  codexExitCode,
  missingText,
  type NumberedEvent,
  type Missing,
} from './numbering.ts';
import type { Wire } from '../wire/wire.ts';

const PAGE_BYTES = 1024 * 1024;
/** Long, but bounded. */
const WAIT_MS = 600_000;
/** The pause before a retry. */
const RETRY_MS = 1000;

type NumberedOutput = Extract<NumberedEvent, { kind: 'output' }>;

export interface FollowOptions {
  readonly host: HostApi;
  readonly clock: Clock;
  readonly wire: Wire;
  readonly owner: Owner;
  readonly id: string;
  readonly processId: string;
  /** The last event that the client does not need. */
  readonly after: number;
  readonly signal: AbortSignal;
  /**
   * Resolves to false if the process turns out to be another one: the first read is sent while the start is still under
   * way.
   */
  readonly confirmed?: Promise<boolean>;
  /** For a sandboxed process that has exited: whether its sandbox made it fail. */
  readonly denied?: (() => Promise<boolean>) | undefined;
}

/** With its name among the readers that pace the process. */
type Follower = FollowOptions & { readonly reader: string };

/** Ends with the process, or when the signal aborts. */
export async function follow(options: FollowOptions): Promise<void> {
  const follower: Follower = { ...options, reader: randomId() };
  const { wire, signal } = follower;
  // Encoded once: it is part of every message.
  const jsonName = JSON.stringify(follower.processId);
  let { after } = follower;
  let offset: number | undefined;
  let uncounted: number | undefined;
  try {
    for (let next = requestPage(follower, after, offset); ;) {
      const page = continueCount(await next, uncounted);
      if ((await follower.confirmed) === false) return;
      signal.throwIfAborted();
      const before = offset;
      uncounted = countUncounted(page);
      ({ nextAfter: after, nextOffset: offset } = page);
      const canTakeMore = wire.backpressure() === undefined && !page.end;
      // While this page is sent, the keeper prepares the next one.
      if (canTakeMore) next = requestPage(follower, after, offset);
      const denied = page.outcome && follower.denied ? await follower.denied() : false;
      for (const events of batches(numberEvents(page, before))) {
        wire.batch(() => {
          for (const event of events) notify(wire, jsonName, event, denied);
        });
        if (events.length === 0) continue;
        // A long gap is sent in portions, at the client's pace.
        if (isPartOfLongGap(events)) {
          await new Promise(setImmediate);
          await waitForClient(follower, page.nextAfter);
        }
        signal.throwIfAborted();
      }
      page.release?.();
      if (page.end) return;
      if (canTakeMore) continue;
      await waitForClient(follower, after);
      next = requestPage(follower, after, offset);
    }
  } catch (error) {
    if (signal.aborted) return releasePacing(follower, after);
    // The process was never started, has been deleted, or the server is closing: there is nothing to send.
    if (isFinal(error)) return undefined;
    // The client would wait forever for the next event. After a lost connection it resumes and reads by itself.
    wire.drop();
    throw error;
  }
}

type Notice = NumberedEvent | (Omit<Missing, 'kind'> & { readonly kind: 'more missing' });

/** How many sequence numbers are sent at once. */
const BATCH_SIZE = 4096;

/** Splits the events into batches: one, unless there is a long gap. */
function* batches(events: Iterable<NumberedEvent>): Generator<readonly Notice[]> {
  let batch: Notice[] = [];
  for (const event of events) {
    if (event.kind !== 'missing' || event.toSeq - event.fromSeq < BATCH_SIZE) {
      batch.push(event);
      continue;
    }
    yield batch;
    batch = [];
    for (let fromSeq = event.fromSeq; fromSeq <= event.toSeq; fromSeq += BATCH_SIZE) {
      const toSeq = Math.min(event.toSeq, fromSeq + BATCH_SIZE - 1);
      const kind = fromSeq === event.fromSeq ? 'missing' : 'more missing';
      yield [{ kind, fromSeq, toSeq, bytes: event.bytes }];
    }
  }
  yield batch;
}

function isPartOfLongGap([first]: readonly Notice[]): boolean {
  if (first?.kind !== 'missing' && first?.kind !== 'more missing') return false;
  return first.toSeq - first.fromSeq === BATCH_SIZE - 1;
}

/**
 * Continues the count of the page before: a keeper that was restarted has forgotten uncounted events, but the client's
 * numbers must continue.
 */
function continueCount(page: Page, before: number | undefined): Page {
  if (before === undefined || !page.uncounted) return page;
  return { ...page, uncounted: { ...page.uncounted, before } };
}

function countUncounted({ uncounted }: Page): number | undefined {
  return uncounted && uncounted.before + uncounted.seqs.length;
}

function requestPage(follower: Follower, after: number, offset: number | undefined): Promise<Page> {
  const page = nextPage(follower, after, offset);
  // A follower that stopped does not look at the page any more.
  page.catch(() => undefined);
  return page;
}

/** Retries while a limit is reached or the keeper is being replaced. */
async function nextPage(
  { host, owner, id, signal, clock, reader }: Follower,
  after: number,
  offset: number | undefined,
): Promise<Page> {
  const size = { maxBytes: PAGE_BYTES, waitMs: WAIT_MS, paceBytes: PACE_BYTES, reader };
  for (;;) {
    try {
      return await host.read(owner, { id, after, offset, uncounted: true, ...size }, signal);
    } catch (error) {
      if (!(error instanceof HoldfastError) || !error.retryable) throw error;
      await pause(clock, RETRY_MS, signal);
    }
  }
}

/** Without a listener the process must not be paused. */
async function releasePacing({ host, owner, id, reader }: Follower, after: number): Promise<void> {
  try {
    await host.read(owner, { id, after, maxBytes: 1, paceBytes: UNPACED_BYTES, reader });
  } catch (error) {
    if (!isExpectedError(error)) throw error;
  }
}

function isFinal(error: unknown): boolean {
  return (
    error instanceof HoldfastError && ['not_found', 'aborted', 'host_closed'].includes(error.code)
  );
}

function isExpectedError(error: unknown): boolean {
  return error instanceof HoldfastError && !['internal', 'invalid_input'].includes(error.code);
}

async function waitForClient(
  { host, owner, id, wire, clock, signal, reader }: Follower,
  after: number,
): Promise<void> {
  for (let full = wire.backpressure(); full; full = wire.backpressure()) {
    let cancel = (): void => undefined;
    const timeout = new Promise<'late'>((resolve) => {
      cancel = clock.after(STILL_HERE_MS, () => resolve('late'));
    });
    const first = await Promise.race([full, timeout]);
    cancel();
    if (first === 'late' && !signal.aborted)
      await host.read(owner, { id, after, maxBytes: 1, paceBytes: PACE_BYTES, reader }, signal);
  }
}

function notify(wire: Wire, jsonName: string, event: Notice, sandboxDenied: boolean): void {
  if (event.kind === 'output') {
    notifyOutput(wire, jsonName, event);
  } else if (event.kind === 'exited') {
    const exitCode = codexExitCode(event.outcome, constants.signals);
    wire.send(
      `{"method":"process/exited","params":{"processId":${jsonName},"seq":${event.seq},"exitCode":${exitCode},"sandboxDenied":${sandboxDenied}}}`,
    );
  } else if (event.kind === 'closed') {
    wire.send(`{"method":"process/closed","params":{"processId":${jsonName},"seq":${event.seq}}}`);
  } else {
    // The client would wait forever for a number that never comes.
    const text = event.kind === 'missing' ? Buffer.from(missingText(event)).toString('base64') : '';
    for (let seq = event.fromSeq; seq <= event.toSeq; seq += 1)
      wire.send(
        `${outputHead(jsonName, seq, 'stdout')}${seq === event.fromSeq ? text : ''}${OUTPUT_TAIL}`,
      );
  }
}

/**
 * Encodes into the send buffer: as a string, the output would be copied twice more, and this is most of the traffic.
 */
function notifyOutput(wire: Wire, jsonName: string, { seq, stream, data }: NumberedOutput): void {
  const head = outputHead(jsonName, seq, stream);
  const headBytes = Buffer.byteLength(head);
  const chunkBytes = base64Length(data.length);
  const into = wire.allocate(headBytes + chunkBytes + OUTPUT_TAIL.length);
  into.write(head);
  encodeBase64(data, into.subarray(headBytes));
  into.write(OUTPUT_TAIL, headBytes + chunkBytes, 'latin1');
}

const OUTPUT_TAIL = '"}}';

function outputHead(jsonName: string, seq: number, stream: string): string {
  return `{"method":"process/output","params":{"processId":${jsonName},"seq":${seq},"stream":"${stream}","chunk":"`;
}
