// The screen of one terminal: a view of its journal, kept in step by whoever feeds it, and able to go back to any earlier
// event. Its calls are done one after the other, in the order they came.

import type { ProcessEvent } from '../../protocol/event.ts';
import { Replica } from '../emulator/replica.ts';
import type { ReplicaOptions } from '../emulator/replica.ts';
import type { Modes, Snapshot } from './snapshot.ts';
import { SMALL_CELLS, snapshotOf } from './view.ts';
import type { View } from './view.ts';

export interface ScreenParts extends ReplicaOptions {
  readonly reply: ((bytes: Buffer) => void) | undefined;
  readonly used: () => void;
}

export interface SnapshotOptions {
  /** The screen as it was behind this event; as it is now, unless told. */
  readonly at?: number;
  /** How many lines of scrollback; true for all, none unless told. */
  readonly scrollback?: number | boolean;
  /** With the normal screen, too, while the alternate one is shown: for somebody who goes on from here. */
  readonly behind?: boolean;
}

type Listener = (events: readonly ProcessEvent[]) => void;

export class Screen {
  private readonly parts: ScreenParts;
  private readonly now: Replica;
  private readonly listeners = new Set<Listener>();
  private turn: Promise<unknown> = Promise.resolve();
  private closed = false;
  private last = { cols: 0, rows: 0, scrollbackLines: 0 };

  constructor(parts: ScreenParts) {
    this.parts = parts;
    this.now = new Replica(parts);
  }

  /** The last event that was taken in. */
  get seq(): number {
    return this.now.seq;
  }

  get owner(): string {
    return this.parts.owner;
  }

  /** Whether a view was more than a moment's work when it was last taken, or would have been with the scrollback. */
  isLarge(scrollback: boolean): boolean {
    const { cols, rows, scrollbackLines } = this.last;
    return cols * (rows + (scrollback ? scrollbackLines : 0)) > SMALL_CELLS;
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
      const answers = await this.now.process(events);
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

  async snapshot(options: SnapshotOptions = {}): Promise<Snapshot> {
    return snapshotOf(await this.view(options));
  }

  /** The same as it crosses threads: cheap, however large the screen is. */
  view(options: SnapshotOptions = {}): Promise<View> {
    const lines = options.scrollback ?? 0;
    const scrollback = typeof lines === 'number' ? lines : lines ? Number.MAX_SAFE_INTEGER : 0;
    return this.inTurn(async () => {
      const { at, behind = false } = options;
      const lookAt = (replica: Replica): Promise<View> => this.look(replica, scrollback, behind);
      if (at === undefined || at === this.now.seq) return lookAt(this.now);
      if (at > this.now.seq) {
        await this.now.advance(at);
        this.tell([]);
        return lookAt(this.now);
      }
      const past = new Replica(this.parts);
      try {
        await past.advance(at);
        return await lookAt(past);
      } finally {
        await past.unload();
      }
    });
  }

  async modes(): Promise<Modes> {
    return (await this.view()).look.modes;
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
      await this.now.saveCheckpoint();
      await this.now.unload();
    });
  }

  /** As `retire`; and afterwards it can no longer be used. */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.listeners.clear();
    await this.retire();
  }

  private async look(replica: Replica, scrollback: number, behind: boolean): Promise<View> {
    const look = await replica.look(scrollback, behind);
    const { cols, rows, scrollbackLines } = look;
    this.last = { cols, rows, scrollbackLines };
    return { look, seq: replica.seq, skipped: replica.skipped };
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
