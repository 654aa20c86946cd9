// A follower: tells one connection what one process does, from a place in its journal on. It asks for the next page only
// when there is room for it, and meanwhile holds the process back, so that a slow client loses nothing and slows nobody
// else.

import { constants } from 'node:os';
import { base64Length, encodeBase64 } from '../../../base/bytes/base64.ts';
import type { Clock } from '../../../base/clock.ts';
import { randomId } from '../../../base/ids.ts';
import { pause } from '../../../protocol/cancellation.ts';
import { HoldfastError } from '../../../protocol/errors.ts';
import type { HostApi, Owner, Page } from '../../../protocol/host-api.ts';
import { PACE_BYTES, STILL_HERE_MS, UNPACED_BYTES } from '../../../protocol/limits.ts';
import { counted, exitCodeOf, missingText, type Counted, type Missing } from './numbering.ts';
import type { Wire } from '../wire/wire.ts';

const PAGE_BYTES = 1024 * 1024;
/** Only so that a wait ends some time. */
const WAIT_MS = 600_000;
/** Between two tries when something is in the way for the moment. */
const AGAIN_MS = 1000;

type CountedOutput = Extract<Counted, { kind: 'output' }>;

export interface Followed {
  readonly host: HostApi;
  readonly clock: Clock;
  readonly wire: Wire;
  readonly owner: Owner;
  readonly id: string;
  readonly processId: string;
  /** The last event of the journal that is not to be told. */
  readonly after: number;
  readonly signal: AbortSignal;
  /** Resolves when the process is known to be the one that is meant: it is asked about while it is still being started. */
  readonly meant?: Promise<boolean>;
  /** Of a sandboxed process that has exited: whether its sandbox was why it failed. */
  readonly denied?: (() => Promise<boolean>) | undefined;
}

/** With its name among the readers that hold the process back. */
type Follower = Followed & { readonly reader: string };

/** Ends with the process, or when the signal says so. */
export async function follow(toFollow: Followed): Promise<void> {
  const followed: Follower = { ...toFollow, reader: randomId() };
  const { wire, signal } = followed;
  // JSON of the name once: it is part of every message.
  const name = JSON.stringify(followed.processId);
  let { after } = followed;
  let offset: number | undefined;
  let uncounted: number | undefined;
  try {
    for (let next = ask(followed, after, offset); ;) {
      const page = countedOn(await next, uncounted);
      if ((await followed.meant) === false) return;
      signal.throwIfAborted();
      const before = offset;
      uncounted = uncountedUpTo(page);
      ({ nextAfter: after, nextOffset: offset } = page);
      const room = wire.room() === undefined && !page.end;
      // While this page is told, the keeper makes the next.
      if (room) next = ask(followed, after, offset);
      const denied = page.outcome && followed.denied ? await followed.denied() : false;
      for (const events of portions(counted(page, before))) {
        wire.together(() => {
          for (const event of events) tell(wire, name, event, denied);
        });
        if (events.length === 0) continue;
        // A long stretch of missing numbers leaves in portions, at the client's pace.
        if (isLongStretch(events)) {
          await new Promise(setImmediate);
          await roomFor(followed, page.nextAfter);
        }
        signal.throwIfAborted();
      }
      page.release?.();
      if (page.end) return;
      if (room) continue;
      await roomFor(followed, after);
      next = ask(followed, after, offset);
    }
  } catch (error) {
    if (signal.aborted) return letGo(followed, after);
    // It was never started or has been forgotten, or the server goes down: there is nothing to tell.
    if (isOver(error)) return undefined;
    // The client would wait for ever for what comes next. A connection that ends is resumed, and asks by itself.
    wire.drop();
    throw error;
  }
}

type Told = Counted | (Omit<Missing, 'kind'> & { readonly kind: 'more missing' });

/** So many numbers at once; between them the client is waited for. */
const PORTION = 4096;

/** What is told in one go: everything, unless there is a long stretch of missing numbers. */
function* portions(events: Iterable<Counted>): Generator<readonly Told[]> {
  let together: Told[] = [];
  for (const event of events) {
    if (event.kind !== 'missing' || event.toSeq - event.fromSeq < PORTION) {
      together.push(event);
      continue;
    }
    yield together;
    together = [];
    for (let fromSeq = event.fromSeq; fromSeq <= event.toSeq; fromSeq += PORTION) {
      const toSeq = Math.min(event.toSeq, fromSeq + PORTION - 1);
      const kind = fromSeq === event.fromSeq ? 'missing' : 'more missing';
      yield [{ kind, fromSeq, toSeq, bytes: event.bytes }];
    }
  }
  yield together;
}

function isLongStretch([first]: readonly Told[]): boolean {
  if (first?.kind !== 'missing' && first?.kind !== 'more missing') return false;
  return first.toSeq - first.fromSeq === PORTION - 1;
}

/** Counted on from the page before: a keeper that died and came back remembers no uncounted events, and the client's numbers must go on. */
function countedOn(page: Page, before: number | undefined): Page {
  if (before === undefined || !page.uncounted) return page;
  return { ...page, uncounted: { ...page.uncounted, before } };
}

function uncountedUpTo({ uncounted }: Page): number | undefined {
  return uncounted && uncounted.before + uncounted.seqs.length;
}

function ask(follower: Follower, after: number, offset: number | undefined): Promise<Page> {
  const page = nextPage(follower, after, offset);
  // Whoever stopped following does not look at it any more.
  page.catch(() => undefined);
  return page;
}

/** A limit that others have reached, or a keeper that is being replaced, is waited out. */
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
      await pause(clock, AGAIN_MS, signal);
    }
  }
}

/** While nobody listens, nobody is waited for. */
async function letGo({ host, owner, id, reader }: Follower, after: number): Promise<void> {
  try {
    await host.read(owner, { id, after, maxBytes: 1, paceBytes: UNPACED_BYTES, reader });
  } catch (error) {
    if (!isExpected(error)) throw error;
  }
}

function isOver(error: unknown): boolean {
  return (
    error instanceof HoldfastError && ['not_found', 'aborted', 'host_closed'].includes(error.code)
  );
}

function isExpected(error: unknown): boolean {
  return error instanceof HoldfastError && !['internal', 'invalid_input'].includes(error.code);
}

async function roomFor(
  { host, owner, id, wire, clock, signal, reader }: Follower,
  after: number,
): Promise<void> {
  for (let room = wire.room(); room; room = wire.room()) {
    let cancel = (): void => undefined;
    const late = new Promise<'late'>((resolve) => {
      cancel = clock.after(STILL_HERE_MS, () => resolve('late'));
    });
    const first = await Promise.race([room, late]);
    cancel();
    if (first === 'late' && !signal.aborted)
      await host.read(owner, { id, after, maxBytes: 1, paceBytes: PACE_BYTES, reader }, signal);
  }
}

function tell(wire: Wire, name: string, event: Told, sandboxDenied: boolean): void {
  if (event.kind === 'output') {
    tellOutput(wire, name, event);
  } else if (event.kind === 'exited') {
    const exitCode = exitCodeOf(event.outcome, constants.signals);
    wire.send(
      `{"method":"process/exited","params":{"processId":${name},"seq":${event.seq},"exitCode":${exitCode},"sandboxDenied":${sandboxDenied}}}`,
    );
  } else if (event.kind === 'closed') {
    wire.send(`{"method":"process/closed","params":{"processId":${name},"seq":${event.seq}}}`);
  } else {
    // A number that never comes would hold up the client for ever.
    const text = event.kind === 'missing' ? Buffer.from(missingText(event)).toString('base64') : '';
    for (let seq = event.fromSeq; seq <= event.toSeq; seq += 1)
      wire.send(
        `${outputHead(name, seq, 'stdout')}${seq === event.fromSeq ? text : ''}${OUTPUT_TAIL}`,
      );
  }
}

/**
 * Written where it is sent from: the same as text would be copied twice more on its way, and most of what is sent is
 * this.
 */
function tellOutput(wire: Wire, name: string, { seq, stream, data }: CountedOutput): void {
  const head = outputHead(name, seq, stream);
  const headBytes = Buffer.byteLength(head);
  const chunkBytes = base64Length(data.length);
  const into = wire.message(headBytes + chunkBytes + OUTPUT_TAIL.length);
  into.write(head);
  encodeBase64(data, into.subarray(headBytes));
  into.write(OUTPUT_TAIL, headBytes + chunkBytes, 'latin1');
}

const OUTPUT_TAIL = '"}}';

function outputHead(name: string, seq: number, stream: string): string {
  return `{"method":"process/output","params":{"processId":${name},"seq":${seq},"stream":"${stream}","chunk":"`;
}
