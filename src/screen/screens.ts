// The public face of this floor, for whoever drives terminals. In short:
//
//   const screens = new Screens({ clock });                       one per server; one worker thread serves all screens
//   const screen = screens.open({ size, source, reply });         cheap; nothing runs before it is used
//   await screen.feed(events, { live: true });                    events of the journal as they come (output, resize …)
//   await screen.advance();                                       or: read the source to its end and take all of it in
//   const snapshot = await screen.snapshot({ scrollback: 100 });  now; { at: seq } for any earlier moment
//   const result = await screen.wait({ text: 'ready' }, { timeoutMs: 5000 });
//   encodeKeys(['C-c', 'Up'], (await screen.modes())), encodePaste, encodeMouse         keys.ts
//   await pictures.png(snapshot, options), renderSvg, renderHtml                        pictures.ts, svg.ts, html.ts
//   asciicast, recordings.gif / apng / video                                            asciicast.ts, recordings.ts
//
// A screen is a view of a journal: it is given events with their sequence numbers and knows nothing of hosts.

import type { Clock } from '../base/clock.ts';
import type { ProcessEvent } from '../protocol/event.ts';
import type { TerminalSize } from '../protocol/process.ts';
import type { Modes, Snapshot } from './snapshot.ts';
import type { ScreenCondition, ScreenWait, ScreenWaitOptions } from './condition.ts';

/** Where a screen reads what it was not fed: to start, to look back, and after its worker had to be replaced. */
export interface EventSource {
  /** Pages of events behind `after`, in order, up to the end of what is there now (or to `upTo`, included). */
  read(after: number, upTo?: number): AsyncIterable<readonly ProcessEvent[]>;
}

/** Where checkpoints are kept. What it answers may be old or missing; it only saves time. */
export interface CheckpointStore {
  save(seq: number, bytes: Uint8Array): void | Promise<void>;
  /** The newest with a number of at most `seq`. */
  nearest(
    seq: number,
  ): Checkpoint | undefined | Promise<Checkpoint | undefined>;
}

export interface Checkpoint {
  readonly seq: number;
  readonly bytes: Uint8Array;
}

export interface ScreenOptions {
  /** The size at the start of the journal. */
  readonly size: TerminalSize;
  readonly source: EventSource;
  /** Lines above the screen that are kept; 5000 unless told. */
  readonly scrollback?: number;
  /** In memory, a few, unless told. */
  readonly checkpoints?: CheckpointStore;
  /** Bytes to write to the program, in answer to what it asked the terminal. Only for events fed as live. */
  readonly reply?: (bytes: Buffer) => void;
}

export interface ScreensOptions {
  readonly clock: Clock;
}

export interface SnapshotOptions {
  /** The screen as it was behind this event. */
  readonly at?: number;
  /** How many lines of scrollback; true for all. */
  readonly scrollback?: number | boolean;
}

export interface ScreenApi {
  /** The last event that was fed. */
  readonly seq: number;
  /** Takes events in, in order; those up to `seq` are passed over. Resolves when the emulator has them: await it, and
   *  no more than a page is ever waiting. `live` events may be answered through `reply`. */
  feed(events: readonly ProcessEvent[], options?: { readonly live?: boolean }): Promise<void>;
  /** Reads the source up to `upTo` or its end. Never answers queries. */
  advance(upTo?: number): Promise<void>;
  snapshot(options?: SnapshotOptions): Promise<Snapshot>;
  modes(): Promise<Modes>;
  wait(condition: ScreenCondition, options?: ScreenWaitOptions): Promise<ScreenWait>;
  /** Called after each time the emulator has taken something in. */
  onChange(listener: () => void): () => void;
  /** Gives its memory back, keeping a checkpoint; the next use brings it back. */
  rest(): Promise<void>;
  close(): void;
}
