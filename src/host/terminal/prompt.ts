// Whether a shell waits for a command, as far as its marks tell. What somebody else typed makes it doubtful for a
// moment: the shell may be about to read that.

import type { Clock } from '../../base/clock.ts';
import type { Mark } from './marks.ts';

export interface PromptOptions {
  readonly clock: Clock;
  /** The shell has read everything typed and waits; everything that it printed before has been seen. */
  readonly rests: () => boolean;
  /** It reads characters, not lines. */
  readonly edits: () => boolean;
  /** The shell waits for a command now. */
  readonly ready: () => void;
}

/** After something was typed ahead: when it is looked, again and again, whether the shell has read that. */
const SETTLE_MS = 200;
/**
 * After a line end was typed at a prompt: a line editor that says nothing for so long did not take it for one. A shell
 * that reads lines always does.
 */
const IGNORED_MS = 3000;
/** Characters that end a line, or make a shell draw its prompt anew. */
// oxlint-disable-next-line no-control-regex
const SUBMITS = /[\r\n\x03\x04\x1a\x1c]/;
const LINE_ENDS = /[\r\n]/;
const TAKES_PASTES = '\x1b[?2004h';

export class Prompt {
  /**
   * unseen: no mark so far. busy: something runs. ended: a prompt is being drawn. settling: it is drawn, but what was
   * typed ahead may be read by it. ready: the shell waits for a command.
   */
  private state: 'unseen' | 'busy' | 'ended' | 'settling' | 'ready' = 'unseen';
  private typedAhead = false;
  private cancelTimer: (() => void) | undefined;
  /** The shell said that a command begins, since the last prompt. */
  private begun = false;
  private count: number | undefined;
  /** The last bytes that were printed while it is drawn. */
  private drawn = '';
  /** The line editor takes a paste whole: it says so between the end of a command and the prompt. */
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

  /** What is typed now is for the shell. */
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
   * A prompt whose end of the command before was not told: its hook is gone, or nothing was executed. A prompt that is
   * drawn again, as behind a change of size, is none.
   */
  isUnannounced(mark: Mark): boolean {
    if (mark.kind !== 'ready' || this.state === 'ended' || this.state === 'unseen') return false;
    if (this.state === 'busy' && this.begun) return true;
    return mark.count !== undefined && mark.count !== this.count && !this.ready;
  }

  mark(mark: Mark): void {
    const { kind } = mark;
    // While a prompt is drawn no command begins: it is a trace of what draws it.
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
    // Prompts are drawn again while someone types: only the first behind an end says something.
    if (this.state !== 'ended') return;
    if (this.typedAhead) this.settle(SETTLE_MS, false);
    else this.becomeReady();
  }

  /** Somebody else typed: what the shell tells next may be about that. */
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
