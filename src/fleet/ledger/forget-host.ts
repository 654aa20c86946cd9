// What the ledger says of a machine that never returns: everything that it had begun, and whose end it had not written, is lost.

import type { Clock } from '../../base/clock.ts';
import { randomId } from '../../base/ids.ts';
import { pause } from '../../protocol/cancellation.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { Fabric, type FabricOptions } from '../wire/fabric.ts';
import { subjects } from '../wire/subjects.ts';
import {
  encodeBatch,
  keyOf,
  MOST_ENTRIES,
  readBatch,
  type Batch,
  type Begun,
  type LedgerEntry,
} from './entries.ts';
import { Refused, type Store } from './store.ts';
import { LEDGER, ledgerSubjects } from './streams.ts';

/** A host that lives is heard within this time. */
const LISTEN_MS = 3500;
const CONNECT_MS = 10_000;
const LOOK_MS = 50;
const REASON = 'host gone';

/** Processes of one host that have begun and not ended, from its messages in their order. */
class Fold {
  private readonly running = new Map<string, { begun: Begun; boot: string; n: number }>();
  /** The host has been forgotten, and has written nothing since. */
  isGone = false;

  note({ boot, n, entries }: Batch): void {
    for (const entry of entries) {
      this.isGone = entry.t === 'gone';
      if (entry.t === 'begun') this.running.set(keyOf(entry), { begun: entry, boot, n });
      else if (entry.t === 'ended') this.running.delete(keyOf(entry.end));
      else if (entry.t === 'removed') this.running.delete(keyOf(entry));
      else if (entry.t === 'anew') this.dropBefore(boot, entry.from);
    }
  }

  lost(atMs: number): LedgerEntry[] {
    return Array.from(this.running.values(), ({ begun }) => lostOf(begun, atMs));
  }

  private dropBefore(boot: string, from: number): void {
    for (const [key, each] of this.running)
      if (each.boot !== boot || each.n < from) this.running.delete(key);
  }
}

/** Returns how many processes were lost. Refused while the host is there. */
export async function forgetHost(options: FabricOptions, host: string): Promise<number> {
  const { clock } = options;
  const fabric = new Fabric(options);
  const heard = new Promise<void>((resolve) =>
    fabric.subscribe(subjects.up(host, 'beat'), () => resolve()),
  );
  try {
    const late = pause(clock, CONNECT_MS).then(() => {
      throw new HoldfastError('fabric_degraded', fabric.problem);
    });
    late.catch(() => undefined);
    await Promise.race([new Promise<void>((resolve) => fabric.onUp(resolve)), late]);
    const { Store: Loaded } = await import('./store.ts');
    const store = await Loaded.open(fabric);
    if (!(await store?.state(LEDGER)) || !store)
      throw new HoldfastError(
        'unsupported',
        'This fleet has no ledger: its hosts say what they had.',
        {
          remedy: 'Give NATS JetStream.',
        },
      );
    return await report(store, host, clock, heard);
  } finally {
    await fabric.close();
  }
}

async function report(
  store: Store,
  host: string,
  clock: Clock,
  heard: Promise<void>,
): Promise<number> {
  const subject = ledgerSubjects.of(host);
  const boot = `forget-${randomId()}`;
  for (;;) {
    const last = await store.last(LEDGER, subject);
    if (!last)
      throw new HoldfastError('not_found', `The ledger knows no host "${host}".`, {
        remedy: 'Give the name that "holdfast fleet hosts" showed.',
      });
    const fold = await foldOf(store, subject, last.seq, clock);
    if (fold.isGone) return 0;
    await refuseIfHeard(host, clock, heard);
    const lost = fold.lost(clock.wallMs());
    const entries: LedgerEntry[] = [...lost, { t: 'gone' }];
    try {
      let { seq } = last;
      for (let n = 1; entries.length > 0; n += 1) {
        const batch: Batch = { v: 1, boot, n, entries: entries.splice(0, MOST_ENTRIES) };
        seq = await store.append(subject, encodeBatch(batch), seq);
      }
      return lost.length;
    } catch (error) {
      // The host, or another command that forgets it, has written meanwhile: its words count.
      if (!(error instanceof Refused)) throw error;
    }
  }
}

async function refuseIfHeard(host: string, clock: Clock, heard: Promise<void>): Promise<void> {
  const isHere = await Promise.race([
    heard.then(() => true),
    pause(clock, LISTEN_MS).then(() => false),
  ]);
  if (!isHere) return;
  throw new HoldfastError('still_running', `The host "${host}" is still there.`, {
    remedy: 'Let NATS read nats.conf again (nats-server --signal reload), or stop its server.',
  });
}

/** Of all messages of a subject up to this one. */
async function foldOf(store: Store, subject: string, until: number, clock: Clock): Promise<Fold> {
  const fold = new Fold();
  let seen = 0;
  const messages = await store.follow(
    1,
    ({ seq, bytes }) => {
      const batch = readBatch(bytes);
      if (batch && seq <= until) fold.note(batch);
      seen = seq;
    },
    subject,
  );
  try {
    let [before, changedUs] = [0, clock.nowUs()];
    for (;;) {
      if (seen >= until) return fold;
      if (seen > before) [before, changedUs] = [seen, clock.nowUs()];
      if (clock.nowUs() - changedUs > CONNECT_MS * 1000)
        throw new HoldfastError('fabric_degraded', 'JetStream does not give the ledger.');
      await pause(clock, LOOK_MS);
    }
  } finally {
    messages.stop();
  }
}

function lostOf(begun: Begun, atMs: number): LedgerEntry {
  const { id, owner, command, name, labels, startedAtMs } = begun;
  const end = {
    id,
    owner,
    command,
    ...(name !== undefined && { name }),
    ...(labels && { labels }),
    outcome: { kind: 'lost', reason: REASON } as const,
    durationMs: Math.max(0, atMs - startedAtMs),
    bytes: 0,
    lastLines: '',
    atMs,
  };
  return { t: 'ended', n: 0, end };
}
