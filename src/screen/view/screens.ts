// The entry point of this floor:
//
//   const screens = new Screens({ clock });                       one per server; one worker thread serves all screens
//   const screen = screens.open({ size, source, reply });         cheap; nothing runs before it is used
//   await screen.feed(events, { live: true });                    events of the journal as they happen
//   await screen.advance();                                       or: read the source to its end
//   const snapshot = await screen.snapshot({ scrollback: 100 });  now; { at: seq } for an earlier event
//   const result = await screens.wait(screen, { text: 'ready' }, { timeoutMs: 5000 });
//   new QueryWatch().asks(bytes)                                  queries.ts: do the bytes contain a terminal query?
//   encodeKeys(['C-c', 'Up'], modes), encodePaste                 keys.ts
//   await pictures.png(await screen.view(), options)              pictures.ts: PNG, SVG, HTML, JSON, in worker threads
//   asciicast, recordings                                         asciicast.ts, recordings.ts
//
// A screen is a view of a journal: it gets events with sequence numbers and does not know the host.

import type { Clock } from '../../base/clock.ts';
import type { TerminalSize } from '../../protocol/process.ts';
import { MemoryCheckpoints } from '../emulator/checkpoints.ts';
import type { CheckpointStore } from '../emulator/checkpoints.ts';
import type { ScreenCondition } from '../../protocol/screen-condition.ts';
import type { ScreenWait, ScreenWaitOptions } from './condition.ts';
import { EmulatorThread } from '../emulator/emulator-thread.ts';
import { Patterns } from './patterns.ts';
import type { EventSource } from '../emulator/replica.ts';
import { Screen } from './screen.ts';
import { waitOnScreen } from './screen-wait.ts';
import type { ReadText } from './screen-wait.ts';
import { textOf } from './view.ts';

export interface ScreensOptions {
  readonly clock: Clock;
  /** Processor time for one job of the worker. */
  readonly budgetMs?: number;
  /** A screen that is unused for this long is unloaded from the worker, with a checkpoint. */
  readonly idleMs?: number;
  /** The maximum number of screens in the worker at once. */
  readonly maxLoaded?: number;
  /** Makes text of a view, in another thread if it is large; by default in this thread. */
  readonly readText?: ReadText;
}

export interface ScreenOptions {
  /** The size at the start of the journal. */
  readonly size: TerminalSize;
  readonly source: EventSource;
  /** Owners take turns in the worker threads. */
  readonly owner?: string;
  /** Lines of scrollback; 5000 by default. */
  readonly scrollback?: number;
  /** By default a few, in memory. */
  readonly checkpoints?: CheckpointStore;
  /** Writes answers to terminal queries to the program. Only for events fed as live. */
  readonly reply?: (bytes: Buffer) => void;
}

const SCROLLBACK = 5000;

export class Screens {
  private readonly clock: Clock;
  private readonly emulators: EmulatorThread;
  private readonly patterns: Patterns;
  private readonly readText: ReadText;
  private readonly idleMs: number;
  private readonly maxLoaded: number;
  /** Least recently used first. */
  private readonly usedAtUs = new Map<Screen, number>();
  private cancelSweep: (() => void) | undefined;

  constructor(options: ScreensOptions) {
    const { clock, budgetMs } = options;
    this.clock = clock;
    this.emulators = new EmulatorThread({ clock, ...(budgetMs !== undefined && { budgetMs }) });
    this.patterns = new Patterns(clock);
    this.readText = options.readText ?? (async (screen) => textOf(await screen.view()));
    this.idleMs = options.idleMs ?? 120_000;
    this.maxLoaded = options.maxLoaded ?? 64;
  }

  /** How many worker threads were replaced or ended. */
  get generation(): number {
    return this.emulators.generation;
  }

  open(options: ScreenOptions): Screen {
    const { size, source, reply } = options;
    const screen: Screen = new Screen({
      emulators: this.emulators,
      source,
      owner: options.owner ?? '',
      size,
      scrollback: options.scrollback ?? SCROLLBACK,
      checkpoints: options.checkpoints ?? new MemoryCheckpoints(),
      reply,
      used: () => this.used(screen),
    });
    return screen;
  }

  /** Checks now and after each change, until the condition holds or the timeout passes. */
  wait(
    screen: Screen,
    condition: ScreenCondition,
    options: ScreenWaitOptions = {},
  ): Promise<ScreenWait> {
    const { clock, patterns, readText } = this;
    return waitOnScreen(screen, condition, options, { clock, patterns, readText });
  }

  /** Resolves when every thread has ended. */
  async close(): Promise<void> {
    this.cancelSweep?.();
    this.usedAtUs.clear();
    await Promise.all([this.emulators.close(), this.patterns.close()]);
  }

  private used(screen: Screen): void {
    this.usedAtUs.delete(screen);
    this.usedAtUs.set(screen, this.clock.nowUs());
    if (this.usedAtUs.size > this.maxLoaded) this.sweep();
    this.cancelSweep ??= this.clock.after(this.idleMs, () => this.sweep());
  }

  private sweep(): void {
    this.cancelSweep?.();
    this.cancelSweep = undefined;
    const oldest = this.clock.nowUs() - this.idleMs * 1000;
    for (const [screen, at] of this.usedAtUs) {
      if (at > oldest && this.usedAtUs.size <= this.maxLoaded) break;
      this.usedAtUs.delete(screen);
      // Only frees memory. If it fails or the screen was closed, there is nothing to free, or the next use reports the
      // error.
      screen.retire().catch(() => undefined);
    }
    if (this.usedAtUs.size > 0)
      this.cancelSweep = this.clock.after(this.idleMs, () => this.sweep());
  }
}
