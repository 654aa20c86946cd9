// The screen of one terminal: a view of its journal that is fed with events and can also show any earlier event. Calls
// run one after the other, in order.

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
  /** The screen after this event; by default now. */
  readonly at?: number;
  /** How many lines of scrollback; true for all; by default none. */
  readonly scrollback?: number | boolean;
  /** Includes the normal screen while the alternate one is shown: for clients that continue from here. */
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

  /** The last event that was processed. */
  get seq(): number {
    return this.now.seq;
  }

  get owner(): string {
    return this.parts.owner;
  }

  /** Whether a view was expensive when it was last taken, or would have been with the scrollback. */
  isLarge(scrollback: boolean): boolean {
    const { cols, rows, scrollbackLines } = this.last;
    return cols * (rows + (scrollback ? scrollbackLines : 0)) > SMALL_CELLS;
  }

  /** Takes memory in the worker. */
  get loaded(): boolean {
    return this.now.loaded;
  }

  /**
   * Processes events in order. Events up to `seq` are ignored; missing ones before them are read from the source.
   * Resolves when the emulator has them, so a caller that awaits it never has more than a page waiting. Terminal
   * queries in `live` events are answered through `reply`; those in other events, or read from the source, are not.
   */
  feed(events: readonly ProcessEvent[], options?: { readonly live?: boolean }): Promise<void> {
    return this.inTurn(async () => {
      const first = events.find(({ seq }) => seq > this.now.seq);
      if (first === undefined) return;
      if (first.seq > this.now.seq + 1) await this.now.advance(first.seq - 1);
      const answers = await this.now.process(events);
      if (options?.live === true && answers.length > 0)
        this.parts.reply?.(Buffer.from(answers.join('')));
      this.notify(events);
    });
  }

  /** Reads the source up to `upTo`, or to its end. Answers no queries. */
  advance(upTo?: number): Promise<void> {
    return this.inTurn(async () => {
      const before = this.now.seq;
      await this.now.advance(upTo);
      if (this.now.seq > before) this.notify([]);
    });
  }

  async snapshot(options: SnapshotOptions = {}): Promise<Snapshot> {
    return snapshotOf(await this.view(options));
  }

  /** The form that crosses threads: cheap, however large the screen is. */
  view(options: SnapshotOptions = {}): Promise<View> {
    const lines = options.scrollback ?? 0;
    const scrollback = typeof lines === 'number' ? lines : lines ? Number.MAX_SAFE_INTEGER : 0;
    return this.inTurn(async () => {
      const { at, behind = false } = options;
      const lookAt = (replica: Replica): Promise<View> => this.look(replica, scrollback, behind);
      if (at === undefined || at === this.now.seq) return lookAt(this.now);
      if (at > this.now.seq) {
        await this.now.advance(at);
        this.notify([]);
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

  /** Called after each change, with the events if they were fed. Returns a function that unsubscribes. */
  onChange(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  /** Saves a checkpoint and frees the memory in the worker; the next use restores it. */
  retire(): Promise<void> {
    return this.enqueue(async () => {
      if (!this.now.loaded) return;
      await this.now.saveCheckpoint();
      await this.now.unload();
    });
  }

  /** Like `retire`, but the screen cannot be used afterwards. */
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

  private notify(events: readonly ProcessEvent[]): void {
    for (const listener of this.listeners) listener(events);
  }

  private inTurn<T>(act: () => Promise<T>): Promise<T> {
    if (this.closed) return Promise.reject(new Error('This screen is closed.'));
    this.parts.used();
    return this.enqueue(act);
  }

  private enqueue<T>(act: () => Promise<T>): Promise<T> {
    const acted = this.turn.then(act);
    this.turn = acted.catch(() => undefined);
    return acted;
  }
}
