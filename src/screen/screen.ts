// The screen of one terminal: a view of its journal, kept in step by whoever feeds it, and able to go back to any earlier
// event. Its calls are done one after the other, in the order they came.

import type { ProcessEvent } from '../protocol/event.ts';
import type { Look } from './emulator.ts';
import { gridRows } from './grid.ts';
import { Replica } from './replica.ts';
import type { ReplicaOptions } from './replica.ts';
import { rowText, screenHash } from './snapshot.ts';
import type { Modes, Skipped, Snapshot } from './snapshot.ts';

export interface ScreenParts extends ReplicaOptions {
  readonly reply: ((bytes: Buffer) => void) | undefined;
  readonly used: () => void;
}

export interface SnapshotOptions {
  /** The screen as it was behind this event; as it is now, unless told. */
  readonly at?: number;
  /** How many lines of scrollback; true for all, none unless told. */
  readonly scrollback?: number | boolean;
}

type Listener = (events: readonly ProcessEvent[]) => void;

export class Screen {
  private readonly parts: ScreenParts;
  private readonly now: Replica;
  private readonly listeners = new Set<Listener>();
  private turn: Promise<unknown> = Promise.resolve();
  private closed = false;

  constructor(parts: ScreenParts) {
    this.parts = parts;
    this.now = new Replica(parts);
  }

  /** The last event that was taken in. */
  get seq(): number {
    return this.now.seq;
  }

  /** Takes memory in the worker. */
  get loaded(): boolean {
    return this.now.loaded;
  }

  /**
   * Takes events in, in order; those up to `seq` are passed over, and what is missing before them is read from the source.
   * Resolves when the emulator has them: await it, and no more than a page is ever waiting. To `live` events the terminal
   * answers through `reply`; to others, and to what is read from the source, it never does.
   */
  feed(events: readonly ProcessEvent[], options?: { readonly live?: boolean }): Promise<void> {
    return this.inTurn(async () => {
      const first = events.find(({ seq }) => seq > this.now.seq);
      if (first === undefined) return;
      if (first.seq > this.now.seq + 1) await this.now.advance(first.seq - 1);
      const answers = await this.now.take(events);
      if (options?.live === true && answers.length > 0)
        this.parts.reply?.(Buffer.from(answers.join('')));
      this.tell(events);
    });
  }

  /** Reads the source up to `upTo`, or to its end. Answers no queries. */
  advance(upTo?: number): Promise<void> {
    return this.inTurn(async () => {
      const before = this.now.seq;
      await this.now.advance(upTo);
      if (this.now.seq > before) this.tell([]);
    });
  }

  snapshot(options: SnapshotOptions = {}): Promise<Snapshot> {
    const lines = options.scrollback ?? 0;
    const scrollback = typeof lines === 'number' ? lines : lines ? Number.MAX_SAFE_INTEGER : 0;
    return this.inTurn(async () => {
      const { at } = options;
      if (at === undefined || at === this.now.seq) return shown(this.now, scrollback);
      if (at > this.now.seq) {
        await this.now.advance(at);
        this.tell([]);
        return shown(this.now, scrollback);
      }
      const past = new Replica(this.parts);
      try {
        await past.advance(at);
        return await shown(past, scrollback);
      } finally {
        await past.leave();
      }
    });
  }

  async modes(): Promise<Modes> {
    return (await this.snapshot()).modes;
  }

  /** The journal itself. */
  read(after: number, upTo: number): AsyncIterable<readonly ProcessEvent[]> {
    return this.parts.source.read(after, upTo);
  }

  /** Called after each time something was taken in, with the events when they were fed. The answer undoes it. */
  onChange(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  /** Gives its memory in the worker back, keeping a checkpoint; the next use brings it back. */
  retire(): Promise<void> {
    return this.queued(async () => {
      if (!this.now.loaded) return;
      await this.now.keep();
      await this.now.leave();
    });
  }

  /** As `retire`; and afterwards it can no longer be used. */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.listeners.clear();
    await this.retire();
  }

  private tell(events: readonly ProcessEvent[]): void {
    for (const listener of this.listeners) listener(events);
  }

  private inTurn<T>(act: () => Promise<T>): Promise<T> {
    if (this.closed) return Promise.reject(new Error('This screen is closed.'));
    this.parts.used();
    return this.queued(act);
  }

  private queued<T>(act: () => Promise<T>): Promise<T> {
    const acted = this.turn.then(act);
    this.turn = acted.catch(() => undefined);
    return acted;
  }
}

async function shown(replica: Replica, scrollback: number): Promise<Snapshot> {
  return toSnapshot(await replica.look(scrollback), replica.seq, replica.skipped);
}

export function toSnapshot(look: Look, seq: number, skipped: readonly Skipped[]): Snapshot {
  const rows = gridRows(look);
  const { cols, styles, cursor, title, modes, scrollbackLines } = look;
  const above = rows.length - look.rows;
  const rowsShown = rows.slice(above);
  return {
    seq,
    cols,
    rows: look.rows,
    rowsShown,
    scrollback: rows.slice(0, above),
    scrollbackLines,
    styles,
    cursor,
    title,
    modes,
    hash: screenHash(rowsShown.map(rowText)),
    skipped,
  };
}
