// A follower: tells one connection what one process does, from a place in its journal on. It asks for the next page only
// when there is room for it, and meanwhile holds the process back, so that a slow client loses nothing and slows nobody
// else.

import { constants } from 'node:os';
import { base64Length, encodeBase64 } from '../../base/base64.ts';
import type { Clock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { HostApi, Owner, Page } from '../../protocol/host-api.ts';
import { PACE_BYTES, STILL_HERE_MS, UNPACED_BYTES } from '../../protocol/limits.ts';
import { counted, exitCodeOf, missingText, type Counted } from './numbering.ts';
import type { Wire } from './wire.ts';

const PAGE_BYTES = 1024 * 1024;
/** Only so that a wait ends some time. */
const WAIT_MS = 600_000;

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

/** Ends with the process, or when the signal says so. */
export async function follow(followed: Followed): Promise<void> {
  const { wire, signal } = followed;
  // JSON of the name once: it is part of every message.
  const name = JSON.stringify(followed.processId);
  let { after } = followed;
  let offset: number | undefined;
  let asides: number | undefined;
  try {
    for (let next = ask(followed, after, offset); ;) {
      const page = countedOn(await next, asides);
      if ((await followed.meant) === false) return;
      signal.throwIfAborted();
      const before = offset;
      asides = asidesUpTo(page);
      ({ nextAfter: after, nextOffset: offset } = page);
      const room = wire.room() === undefined && !page.end;
      // While this page is told, the keeper makes the next.
      if (room) next = ask(followed, after, offset);
      const denied = page.outcome && followed.denied ? await followed.denied() : false;
      wire.together(() => {
        for (const event of counted(page, before)) tell(wire, name, event, denied);
      });
      page.release?.();
      if (page.end) return;
      if (room) continue;
      await roomFor(followed, after);
      next = ask(followed, after, offset);
    }
  } catch (error) {
    // It was never started, has been forgotten, or the connection is over: there is nothing to tell.
    if (!signal.aborted && !isExpected(error)) throw error;
    if (signal.aborted) await letGo(followed, after);
  }
}

/** Counted on from the page before: a keeper that died and came back remembers no asides, and the client's numbers must go on. */
function countedOn(page: Page, before: number | undefined): Page {
  if (before === undefined || !page.asides) return page;
  return { ...page, asides: { ...page.asides, before } };
}

function asidesUpTo({ asides }: Page): number | undefined {
  return asides && asides.before + asides.seqs.length;
}

function ask(
  { host, owner, id, signal }: Followed,
  after: number,
  offset: number | undefined,
): Promise<Page> {
  const page = host.read(
    owner,
    {
      id,
      after,
      offset,
      asides: true,
      maxBytes: PAGE_BYTES,
      waitMs: WAIT_MS,
      paceBytes: PACE_BYTES,
    },
    signal,
  );
  // Whoever stopped following does not look at it any more.
  page.catch(() => undefined);
  return page;
}

/** While nobody listens, nobody is waited for. */
async function letGo({ host, owner, id }: Followed, after: number): Promise<void> {
  try {
    await host.read(owner, { id, after, maxBytes: 1, paceBytes: UNPACED_BYTES });
  } catch (error) {
    if (!isExpected(error)) throw error;
  }
}

function isExpected(error: unknown): boolean {
  return error instanceof HoldfastError && !['internal', 'invalid_input'].includes(error.code);
}

async function roomFor(
  { host, owner, id, wire, clock, signal }: Followed,
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
      await host.read(owner, { id, after, maxBytes: 1, paceBytes: PACE_BYTES }, signal);
  }
}

function tell(wire: Wire, name: string, event: Counted, sandboxDenied: boolean): void {
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
    const text = Buffer.from(missingText(event)).toString('base64');
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
