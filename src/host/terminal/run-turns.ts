// Decides which run is typed next into a terminal, where, and how its end is detected. Marks are trusted where they
// come; elsewhere the kernel says who reads the terminal, and a sentinel is typed only for a shell.

import type { Language } from './foreground.ts';
import { Looks } from '../descendants/backoff.ts';
import type { Mark } from './marks.ts';
import type { OneRun } from './one-run.ts';
import { Prompt } from './prompt.ts';
import { endsMarks } from './run-text.ts';
import { Reader, type Reading, type ReaderTools } from './input-reader.ts';

/**
 * marks: the shell reports the end. shell: a sentinel is typed when the shell waits for a command again. together: both
 * are typed at once, whatever reads. plain: the end is not reported.
 */
export type Way = 'marks' | 'shell' | 'together' | 'plain';

export interface End {
  readonly status: number | undefined;
  readonly cwd?: string | undefined;
}

export interface TurnActions {
  readonly type: (run: OneRun, way: Way) => void;
  /** Types the sentinel of a run that was typed before. */
  readonly ask: (run: OneRun, language: Language | undefined) => void;
  readonly interrupt: () => void;
  readonly finish: (run: OneRun, end: End) => void;
}

interface Followed {
  readonly run: OneRun;
  /** When its sentinel was typed. */
  readonly askedUs?: number;
  readonly language?: Language;
  readonly printed?: { readonly status: number; readonly atUs: number };
}

interface TurnTools extends ReaderTools {
  readonly offset: () => number;
  /** The shell was started so that it makes marks. */
  readonly marks: boolean;
}

/** How long a shell with marks may take until its first one, and a launcher until its shell. */
const FIRST_MARK_MS = 10_000;
/** A run without a timeout is answered when nothing can be done about it for this long. */
const STUCK_MS = 30_000;
/** How long a shell may take to draw its prompt again after an interrupt. */
const INTERRUPT_MS = 200;
/** How long we look for the reader of a sentinel. */
const WHO_MS = 500;
/** How soon the reader is checked first. */
const LOOK_MS = { soon: 2, marks: 100 };
/**
 * After this long without output, a shell that has read a command, begins nothing and edits its line keeps that
 * command.
 */
const HELD_MS = 3000;

export class Turns {
  private readonly tools: TurnTools;
  private readonly actions: TurnActions;
  private readonly prompt: Prompt;
  private readonly reader: Reader;
  /** Not typed yet, with the times of their requests. */
  private readonly queue: { run: OneRun; sinceUs: number; sentinel: boolean }[] = [];
  /** Typed at a marked prompt: the next reported end belongs to it. */
  private current: OneRun | undefined;
  /** Typed into a shell whose marks are not relied on. */
  private followed: Followed | undefined;
  private interruptedUs: number | undefined;
  private typedUs = 0;
  /** The shell marks the beginning of a command. */
  private begins = false;
  /** No mark has come since a sentinel, or since the prompt may have changed. */
  private unsure = false;
  private gaveUp = false;
  private closed = false;
  private stepping = false;
  private readonly looks: Looks;

  constructor(tools: TurnTools, actions: TurnActions) {
    this.tools = tools;
    this.actions = actions;
    const { clock, edits } = tools;
    this.prompt = new Prompt({
      clock,
      edits,
      rests: () => this.homeRests(),
      ready: () => this.becameReady(),
    });
    this.reader = new Reader(tools);
    this.looks = new Looks(clock, () => this.next());
  }

  get atPrompt(): boolean {
    return this.prompt.near;
  }

  get pastes(): boolean {
    return this.prompt.pastes;
  }

  /** A command that is typed now is the shell's next one. */
  get isFree(): boolean {
    return this.prompt.ready && !this.current && !this.followed && this.queue.length === 0;
  }

  /** A shell reads the terminal, or will. */
  get leadsToShell(): boolean {
    const { kind } = this.reader.now().who;
    return kind === 'shell' || kind === 'remote' || kind === 'soon';
  }

  add(run: OneRun, sentinel: boolean): void {
    this.queue.push({ run, sinceUs: this.tools.clock.nowUs(), sentinel });
    this.looks.from(LOOK_MS.soon);
    this.next();
  }

  /** Takes back a run that was not typed; returns what kept the terminal busy. */
  withdraw(run: OneRun): string | undefined {
    const at = this.queue.findIndex((each) => each.run === run);
    if (at < 0) return undefined;
    this.queue.splice(at, 1);
    this.next();
    const busy = this.current ?? this.followed?.run;
    return busy?.command.slice(0, 200) ?? this.reader.now().name;
  }

  /** Typing failed. */
  drop(run: OneRun): void {
    if (this.current === run) this.current = undefined;
    if (this.followed?.run === run) this.followed = undefined;
  }

  close(): void {
    this.closed = true;
    this.looks.stop();
    this.prompt.close();
    this.queue.length = 0;
    this.current = this.followed = undefined;
  }

  mark(mark: Mark): void {
    const { current } = this;
    const offset = this.tools.offset();
    if (mark.kind === 'begin' && !this.prompt.drawing) {
      this.begins = true;
      current?.outputBegins(offset, mark.early === true);
    }
    if (mark.kind === 'over') current?.outputEnds(offset);
    if (mark.kind === 'more') current?.asksForMore(offset);
    if (mark.kind === 'end') this.commandEnded(mark);
    if (mark.kind === 'ready') this.reader.markedPrompt();
    // fish only draws its prompt again after an interrupt.
    const brokenOff = this.interruptedUs !== undefined && current?.began === false;
    if (mark.kind === 'ready' && (brokenOff || this.prompt.isUnannounced(mark))) {
      this.commandEnded({ status: current?.began === true ? mark.status : undefined });
      this.prompt.mark({ kind: 'end', status: 0 });
    }
    this.prompt.mark(mark);
    this.next();
  }

  private commandEnded(end: End): void {
    const { current } = this;
    this.current = undefined;
    this.interruptedUs = undefined;
    if (!current) return;
    current.refused = this.begins && !current.began;
    this.actions.finish(current, end);
  }

  /** The shell that makes marks is in the foreground and idle. */
  private homeRests(): boolean {
    const { rests, away } = this.reader.now();
    return rests && !away;
  }

  private becameReady(): void {
    if (!this.followed) this.unsure = false;
    this.next();
  }

  output(bytes: Buffer): void {
    this.reader.heard();
    const run = this.current ?? this.followed?.run;
    if (this.prompt.drawing) this.prompt.printed(bytes);
    else run?.printed(bytes, this.tools.offset());
    this.looks.sooner();
  }

  /** Input that belongs to no run. */
  otherInput(bytes: Buffer): void {
    this.prompt.otherInput(bytes);
    if (endsMarks(bytes.toString('latin1'), this.begins)) this.unsure = true;
  }

  /** Its sentinel was printed. */
  answered(run: OneRun, status: number): void {
    // The prompt that follows belongs to the sentinel: any before it was that of the command.
    if (this.prompt.near) this.prompt.take();
    this.unsure = true;
    run.sentinelPrinted(this.tools.offset());
    const { followed } = this;
    if (followed?.run !== run) this.actions.finish(run, { status });
    else {
      // Another shell may have read the sentinel: which one is seen when its line is over.
      this.followed = { ...followed, printed: { status, atUs: this.tools.clock.nowUs() } };
      // Not now: output that was read together with the sentinel is not handled yet.
      this.looks.from(LOOK_MS.soon);
      this.looks.go();
    }
  }

  private concludeFollowed(run: OneRun, status: number | undefined): void {
    this.followed = undefined;
    this.actions.finish(run, { status });
  }

  next(): void {
    if (this.closed || this.stepping) return;
    this.stepping = true;
    try {
      this.step();
    } finally {
      this.stepping = false;
    }
  }

  private step(): void {
    this.looks.stop();
    this.follow();
    while (this.typeFirst()) this.looks.from(this.current ? LOOK_MS.marks : LOOK_MS.soon);
    const watched = this.followed !== undefined || this.current?.awaited === true;
    if (this.closed || (this.queue.length === 0 && !watched)) return;
    this.answerStuck();
    this.looks.go();
  }

  /** Types the sentinel when a shell waits for a command again, whichever shell that is. */
  private follow(): void {
    const { followed, current } = this;
    if (followed) this.followTyped(followed);
    else if (current?.awaited === true && (current.began || !this.begins))
      this.followEntered(current);
  }

  private followTyped(followed: Followed): void {
    const { run, askedUs, language, printed } = followed;
    if (!run.typed) return;
    const seen = this.reader.now();
    if (printed) {
      const late = this.tools.clock.nowUs() - printed.atUs >= WHO_MS * 1000;
      // The prompt that it draws now identifies the one before.
      const isDrawn = seen.identity !== undefined && seen.free && run.promptSeen;
      if (!isDrawn && !late) return;
      if (seen.identity !== undefined && seen.identity !== run.shell) run.entered = seen.name;
      this.concludeFollowed(run, printed.status);
      return;
    }
    if (!seen.free || (askedUs !== undefined && language === seen.language)) return;
    const other = seen.identity !== run.shell;
    if (other) run.entered = seen.name;
    if (other && this.prompt.ready) {
      // It ended the shell that it was typed into: the outer shell waits again, and reports that itself.
      this.concludeFollowed(run, undefined);
      return;
    }
    this.askFor(run, seen);
  }

  /** The command started a shell that reads the terminal now: its own end may be far away. */
  private followEntered(run: OneRun): void {
    const seen = this.reader.now();
    if (seen.who.kind !== 'shell' || !seen.away || !seen.free) return;
    this.current = undefined;
    run.method = 'sentinel';
    run.entered = seen.name;
    this.askFor(run, seen);
  }

  private askFor(run: OneRun, { language }: Reading): void {
    const askedUs = this.tools.clock.nowUs();
    this.followed = { run, askedUs, ...(language && { language }) };
    if (this.prompt.near) this.prompt.take();
    run.sentinelTyped(this.tools.offset());
    this.actions.ask(run, language);
  }

  private typeFirst(): boolean {
    const [first] = this.queue;
    if (!first || this.closed) return false;
    const way = this.wayFor(first);
    if (way === undefined) return false;
    this.queue.shift();
    const { run } = first;
    this.typedUs = this.tools.clock.nowUs();
    this.interruptedUs = undefined;
    if (way === 'marks') this.current = run;
    if (way === 'shell') {
      this.followed = { run };
      this.unsure ||= this.prompt.ready;
    }
    if (way !== 'plain' && this.prompt.near) this.prompt.take();
    this.actions.type(run, way);
    return true;
  }

  private wayFor({ run, sinceUs, sentinel }: (typeof this.queue)[number]): Way | undefined {
    const { prompt } = this;
    if (this.followed && !this.leave(this.followed)) return undefined;
    const isReady = prompt.ready && !this.current;
    if (isReady && !sentinel && !endsMarks(run.command, this.begins)) return 'marks';
    const seen = this.reader.now();
    // The shell seen now: a later look may meet a child that it has just made.
    run.shell = seen.identity;
    if (isReady) return seen.identity === undefined ? undefined : 'shell';
    const waitedMs = (this.tools.clock.nowUs() - sinceUs) / 1000;
    if (this.tools.marks && !prompt.seen && !this.gaveUp) {
      this.gaveUp = waitedMs >= FIRST_MARK_MS;
      if (!this.gaveUp && !seen.away) return undefined;
    }
    if (seen.identity !== undefined) {
      const itsOwn = seen.away || !prompt.seen || (this.unsure && !this.current) || sentinel;
      if (this.current && !seen.away) this.breakOff(this.current, seen);
      return itsOwn && seen.free && !(this.current && !seen.away) ? 'shell' : undefined;
    }
    // A job of the shell, or the program of the terminal, which is not a shell.
    if (prompt.seen) return undefined;
    const blind = sentinel ? 'together' : 'plain';
    if (seen.who.kind === 'unseen') return blind;
    const late = seen.isProgram || waitedMs >= FIRST_MARK_MS;
    return seen.who.pid === this.tools.root && late ? blind : undefined;
  }

  /** Whether the next may be typed although this one's sentinel has not been printed: it has no waiters any more. */
  private leave({ run, askedUs }: Followed): boolean {
    if (askedUs === undefined || !run.abandoned || !this.reader.now().free) return false;
    if (!this.interrupted()) return false;
    this.followed = undefined;
    return true;
  }

  /** The shell waits for the rest of a command, and another run is to be typed. */
  private breakOff(current: OneRun, { rests, free }: Reading): void {
    const left = this.begins && current.abandoned && !current.began && free;
    // Only a shell that waits for a key obeys at once. readline remembers an earlier interrupt and drops the line at
    // the next key, which would be the first of the next command.
    if (rests && (current.incomplete || left)) this.interrupted();
  }

  /** Interrupts once; true when the shell has had the time to draw a prompt. */
  private interrupted(): boolean {
    const nowUs = this.tools.clock.nowUs();
    if (this.interruptedUs !== undefined) return nowUs - this.interruptedUs >= INTERRUPT_MS * 1000;
    this.interruptedUs = nowUs;
    this.actions.interrupt();
    return false;
  }

  private isHeld(nowUs: number, sinceUs: number): boolean {
    const quietUs = nowUs - Math.max(sinceUs, this.reader.quietSinceUs);
    return quietUs >= HELD_MS * 1000 && this.reader.now().edits;
  }

  private answerStuck(): void {
    const nowUs = this.tools.clock.nowUs();
    const isLong = (sinceUs: number): boolean => nowUs - sinceUs >= STUCK_MS * 1000;
    const { followed, current } = this;
    if (followed?.askedUs !== undefined && !followed.printed) {
      if (this.isHeld(nowUs, followed.askedUs)) followed.run.isHeld();
      else if (isLong(followed.askedUs) && this.reader.now().free) followed.run.getStuck();
    }
    if (current && this.begins && !current.began && this.isHeld(nowUs, this.typedUs))
      current.isHeld();
    if (followed || current) return;
    for (const { run, sinceUs } of this.queue) if (isLong(sinceUs)) run.getStuck();
  }
}
