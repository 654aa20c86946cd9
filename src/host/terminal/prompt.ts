// Whether a shell waits for a command, according to its marks. Other input makes that uncertain for a moment, because
// the shell may be about to read it.

import type { Clock } from '../../base/clock.ts';
import type { Mark } from './marks.ts';

export interface PromptOptions {
  readonly clock: Clock;
  /** The shell has read all input and waits, and we have read all of its earlier output. */
  readonly rests: () => boolean;
  /** The terminal is not in canonical mode. */
  readonly edits: () => boolean;
  /** The shell waits for a command now. */
  readonly ready: () => void;
}

/** How often we check whether the shell has read what was typed ahead. */
const SETTLE_MS = 200;
/**
 * After a line end was typed at a prompt: a line editor that prints nothing for this long did not take it as one. A
 * shell in canonical mode always does.
 */
const IGNORED_MS = 3000;
/** Characters that end a line, or make a shell draw its prompt again. */
// oxlint-disable-next-line no-control-regex
const SUBMITS = /[\r\n\x03\x04\x1a\x1c]/;
const LINE_ENDS = /[\r\n]/;
const TAKES_PASTES = '\x1b[?2004h';

export class Prompt {
  /**
   * unseen: no mark so far. busy: a command runs. ended: a prompt is being drawn. settling: it is drawn, but may read
   * what was typed ahead. ready: the shell waits for a command.
   */
  private state: 'unseen' | 'busy' | 'ended' | 'settling' | 'ready' = 'unseen';
  private typedAhead = false;
  private cancelTimer: (() => void) | undefined;
  /** The shell has reported a begin since the last prompt. */
  private begun = false;
  private count: number | undefined;
  /** The last bytes printed while it is drawn. */
  private drawn = '';
  /** The line editor accepts a bracketed paste: it says so between the end of a command and the prompt. */
  pastes = false;
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

  /** Input now goes to the shell. */
  get near(): boolean {
    return this.state === 'ready' || this.state === 'ended' || this.state === 'settling';
  }

  get drawing(): boolean {
    return this.state === 'ended';
  }

  /** Bytes that were printed while it is drawn. */
  printed(bytes: Buffer): void {
    this.drawn += bytes.toString('latin1');
    this.pastes ||= this.drawn.includes(TAKES_PASTES);
    this.drawn = this.drawn.slice(1 - TAKES_PASTES.length);
  }

  /** A command is typed at it. */
  take(): void {
    this.cancelTimer?.();
    this.state = 'busy';
    this.begun = false;
  }

  /**
   * A prompt without a reported end before it: the hook is missing, or nothing was executed. A prompt that is only
   * drawn again, as after a resize, does not count.
   */
  isUnannounced(mark: Mark): boolean {
    if (mark.kind !== 'ready' || this.state === 'ended' || this.state === 'unseen') return false;
    if (this.state === 'busy' && this.begun) return true;
    return mark.count !== undefined && mark.count !== this.count && !this.ready;
  }

  mark(mark: Mark): void {
    const { kind } = mark;
    // No command begins while a prompt is drawn: this is a trace of what draws it.
    if (kind === 'begin' && this.drawing) return;
    if (kind === 'end') {
      this.pastes = false;
      this.drawn = '';
    }
    if (kind === 'begin' || kind === 'end') {
      this.cancelTimer?.();
      this.state = kind === 'begin' ? 'busy' : 'ended';
      this.begun = kind === 'begin';
    }
    if (kind !== 'ready') return;
    this.count = mark.count;
    // Prompts are drawn again while someone types: only the first after an end counts.
    if (this.state !== 'ended') return;
    if (this.typedAhead) this.settle(SETTLE_MS, false);
    else this.becomeReady();
  }

  /** Other input was typed: the next mark may be about that. */
  otherInput(bytes: Buffer): void {
    const text = bytes.toString('latin1');
    const at = text.search(SUBMITS);
    if (at < 0) return;
    if (!this.ready || at < text.length - 1) this.typedAhead = true;
    const line = LINE_ENDS.test(text);
    if (this.ready) this.settle(line ? IGNORED_MS : SETTLE_MS, line);
  }

  close(): void {
    this.cancelTimer?.();
    this.state = 'busy';
  }

  /** `line`: a whole line was typed at it. */
  private settle(ms: number, line: boolean): void {
    this.state = 'settling';
    this.cancelTimer?.();
    this.cancelTimer = this.options.clock.after(ms, () => {
      const { rests, edits } = this.options;
      if (rests() && (!line || edits())) this.becomeReady();
      else this.settle(Math.min(ms * 2, IGNORED_MS), line);
    });
  }

  private becomeReady(): void {
    this.typedAhead = false;
    this.begun = false;
    this.state = 'ready';
    this.options.ready();
  }
}
