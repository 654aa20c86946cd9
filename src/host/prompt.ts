// Whether a shell waits for a command, as far as its marks tell. What somebody else typed makes it doubtful for a
// moment: the shell may be about to read that.

import type { Clock } from '../base/clock.ts';
import type { Mark } from './marks.ts';

export interface PromptOptions {
  readonly clock: Clock;
  /** Bytes typed that no program has read yet. */
  readonly unread: () => number;
  /** The shell waits for a command now. */
  readonly ready: () => void;
}

/** After something was typed ahead: how long a prompt must stand before it counts. */
const SETTLE_MS = 50;
/** After a line end was typed at a prompt: when the shell says nothing for so long, it did not take it for one. */
const IGNORED_MS = 1000;
/** Characters that end a line, or make a shell draw its prompt anew. */
// oxlint-disable-next-line no-control-regex
const SUBMITS = /[\r\n\x03\x04\x1a\x1c]/;
const LINE_ENDS = /[\r\n]/;

export class Prompt {
  /**
   * unseen: no mark so far. busy: something runs. ended: a prompt is being drawn. settling: it is drawn, but what was
   * typed ahead may be read by it. ready: the shell waits for a command.
   */
  private state: 'unseen' | 'busy' | 'ended' | 'settling' | 'ready' = 'unseen';
  private typedAhead = false;
  private cancelTimer: (() => void) | undefined;
  private readonly options: PromptOptions;

  constructor(options: PromptOptions) {
    this.options = options;
  }

  get seen(): boolean {
    return this.state !== 'unseen';
  }

  get ready(): boolean {
    return this.state === 'ready';
  }

  /** What is typed now is for the shell. */
  get near(): boolean {
    return this.state === 'ready' || this.state === 'ended' || this.state === 'settling';
  }

  get drawing(): boolean {
    return this.state === 'ended';
  }

  /** A command is typed at it. */
  take(): void {
    this.state = 'busy';
  }

  mark(kind: Mark['kind']): void {
    if (kind === 'begin' || kind === 'end') {
      this.cancelTimer?.();
      this.state = kind === 'begin' ? 'busy' : 'ended';
    }
    // Prompts are drawn again while someone types: only the first behind an end says something.
    if (kind !== 'ready' || this.state !== 'ended') return;
    if (this.typedAhead) this.settle(SETTLE_MS);
    else this.becomeReady();
  }

  /** Somebody else typed: what the shell tells next may be about that. */
  otherInput(bytes: Buffer): void {
    const text = bytes.toString('latin1');
    const at = text.search(SUBMITS);
    if (at < 0) return;
    if (!this.ready || at < text.length - 1) this.typedAhead = true;
    if (this.ready) this.settle(LINE_ENDS.test(text) ? IGNORED_MS : SETTLE_MS);
  }

  close(): void {
    this.cancelTimer?.();
    this.state = 'busy';
  }

  private settle(ms: number): void {
    this.state = 'settling';
    this.cancelTimer?.();
    this.cancelTimer = this.options.clock.after(ms, () => {
      if (this.options.unread() > 0) this.settle(ms);
      else this.becomeReady();
    });
  }

  private becomeReady(): void {
    this.typedAhead = false;
    this.state = 'ready';
    this.options.ready();
  }
}
