// One run, as far as it has come: typed, printing, ended; and who waits for it.

import type { RunFinishedNote, RunResult, RunCompletion } from '../../protocol/run.ts';
import { Preamble } from './preamble.ts';
import type { Sentinel } from './sentinel.ts';
import { ShownOutput } from './shown-output.ts';

export interface RunFacts {
  readonly name: string;
  readonly command: string;
  readonly method: RunCompletion;
  readonly noWait: boolean;
  readonly nowUs: number;
}

type EndFacts = Pick<
  RunFinishedNote,
  | 'durationMs'
  | 'outputFrom'
  | 'outputTo'
  | 'outputMixed'
  | 'exitCode'
  | 'cwd'
  | 'entered'
  | 'executed'
>;

interface RunEnd {
  /** Undefined when the shell cannot tell. */
  readonly status: number | undefined;
  readonly cwd?: string | undefined;
  readonly offset: number;
  readonly nowUs: number;
}

const LINE_FEED = 10;
/** bash leaves its paste mode between the line that it read and whatever it prints next. */
const PASTE_MODE_OFF = '\x1b[?2004l\r';
/** Enough of the output to find the complaint of a shell about a "!". */
const COMPLAINT_BYTES = 4096;

export class OneRun {
  readonly name: string;
  readonly command: string;
  readonly noWait: boolean;
  method: RunCompletion;
  sentinel: Sentinel | undefined;
  seq = 0;
  endSeq: number | undefined;
  typed = false;
  /** Nothing more will be known about it. */
  over = false;
  /** And everyone who waits may be told. */
  told = false;
  /** Line ends that the terminal shows for what was typed; the output of a shell without a "begin" starts behind them. */
  echoedLines = 0;
  /** How often Enter was pressed for it. */
  submits = 1;
  /** The shell that it was typed into, when a sentinel is to tell its end. */
  shell: string | undefined;
  /** Another shell reads the terminal since. */
  entered: string | undefined;
  /** The shell refused it. */
  refused = false;
  /** What somebody had typed before was taken back first. */
  cleared = false;
  /** Nobody can tell more for now: everyone who waits is answered, and its end may still come. */
  stuck = false;
  private startedUs: number;
  private lastOutputUs: number;
  private outputFrom = 0;
  private outputTo: number | undefined;
  private readonly shown = new ShownOutput();
  private begun = false;
  private mores = 0;
  private held = false;
  private waitedFor = false;
  private complaint = '';
  /** What came directly behind the echo, as far as it may be the end of the paste mode. */
  private behindEcho: string | undefined;
  private preamble: Preamble | undefined;
  private ended: EndFacts | undefined;
  private withSession = false;
  private failure: { readonly error: unknown } | undefined;
  private readonly listeners = new Set<() => void>();

  constructor({ name, command, method, noWait, nowUs }: RunFacts) {
    this.name = name;
    this.command = command;
    this.method = method;
    this.noWait = noWait;
    this.startedUs = this.lastOutputUs = nowUs;
  }

  onChange(listener: () => void): () => void {
    this.waitedFor = true;
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Somebody waited for it, and nobody does any more. */
  get abandoned(): boolean {
    return this.waitedFor && this.listeners.size === 0;
  }

  get awaited(): boolean {
    return this.listeners.size > 0;
  }

  /** The shell said that it runs it. */
  get began(): boolean {
    return this.begun;
  }

  /** All of it was read, and the shell asks for more or does not begin it: something in it is not closed. */
  get incomplete(): boolean {
    return !this.begun && (this.held || this.mores >= this.submits);
  }

  /** The shell has read it and goes on editing it. */
  isHeld(): void {
    this.held = true;
    this.getStuck();
  }

  startedAt(offset: number, nowUs: number): void {
    this.outputFrom = offset;
    this.startedUs = this.lastOutputUs = nowUs;
  }

  wasTyped(): void {
    this.typed = true;
    this.wake();
  }

  getStuck(): void {
    this.stuck = true;
    this.wake();
  }

  /** The shell said so: exact. A command of several parts says it for each; the first counts. */
  outputBegins(offset: number, early: boolean): void {
    if (this.begun) return;
    this.begun = true;
    if (early) this.preamble = new Preamble();
    this.outputFrom = offset;
  }

  /** The shell said so. A shell within this one may have said it before: the last counts. */
  outputEnds(offset: number): void {
    this.outputTo = offset;
  }

  /** Its sentinel is typed: the shell waits for a command. */
  sentinelTyped(offset: number): void {
    this.shown.askedAt(offset);
  }

  /** Its sentinel was printed. */
  sentinelPrinted(offset: number): void {
    this.shown.toldAt(offset);
  }

  /** The prompt behind it has been drawn, and once more behind its sentinel. */
  get promptSeen(): boolean {
    return this.shown.promptSeen;
  }

  asksForMore(offset: number): void {
    if (this.begun) return;
    this.mores += 1;
    this.behindEcho = undefined;
    this.outputFrom = Math.max(this.outputFrom, offset);
    if (this.incomplete) this.getStuck();
  }

  get waitsForOutput(): boolean {
    return this.preamble !== undefined || (!this.begun && this.echoedLines > 0);
  }

  /** Bytes that have just been printed, the last of them at `offset`. */
  printed(bytes: Buffer, offset: number): void {
    if (this.preamble) this.passPreamble(this.preamble, bytes);
    else if (this.waitsForOutput) this.passEcho(bytes, offset);
    else this.passPasteMode(bytes);
    this.shown.printed(bytes);
    if (this.method !== 'sentinel' || !this.command.includes('!')) return;
    const room = COMPLAINT_BYTES - this.complaint.length;
    if (room > 0) this.complaint += bytes.toString('latin1', 0, room);
  }

  /** A shell that replaces "!" found nothing to replace it with, and has run nothing: its status is not of this command. */
  get complainedOf(): boolean {
    return /event not found/i.test(this.complaint);
  }

  private passPreamble(preamble: Preamble, bytes: Buffer): void {
    const before = preamble.length;
    if (!preamble.goesOn(bytes)) this.preamble = undefined;
    this.outputFrom += preamble.length - before;
  }

  private passEcho(bytes: Buffer, offset: number): void {
    let at = -1;
    while (this.echoedLines > 0) {
      at = bytes.indexOf(LINE_FEED, at + 1);
      if (at < 0) return;
      this.echoedLines -= 1;
    }
    this.outputFrom = Math.max(this.outputFrom, offset - bytes.length + at + 1);
    this.behindEcho = '';
    this.passPasteMode(bytes.subarray(at + 1));
  }

  private passPasteMode(bytes: Buffer): void {
    if (this.behindEcho === undefined || this.begun) return;
    this.behindEcho += bytes.toString('latin1', 0, PASTE_MODE_OFF.length);
    if (this.behindEcho.startsWith(PASTE_MODE_OFF)) this.outputFrom += PASTE_MODE_OFF.length;
    else if (PASTE_MODE_OFF.startsWith(this.behindEcho)) return;
    this.behindEcho = undefined;
  }

  quietSince(nowUs: number): number {
    return this.typed ? (nowUs - this.lastOutputUs) / 1000 : 0;
  }

  heard(nowUs: number): void {
    this.lastOutputUs = nowUs;
  }

  finished({ status, cwd, offset, nowUs }: RunEnd): EndFacts {
    const { outputTo, mixed } =
      this.method === 'sentinel'
        ? this.shown.end(offset)
        : { outputTo: this.outputTo ?? offset, mixed: false };
    this.ended = {
      ...(status !== undefined && { exitCode: status }),
      ...(cwd !== undefined && { cwd }),
      ...(this.entered !== undefined && { entered: this.entered }),
      ...(this.refused && { executed: false as const }),
      durationMs: Math.round((nowUs - this.startedUs) / 1000),
      outputFrom: Math.min(this.outputFrom, outputTo),
      outputTo,
      // Of several lines each is echoed when the shell reads it.
      ...((mixed || (this.method === 'sentinel' && /[\r\n]./.test(this.command))) && {
        outputMixed: true as const,
      }),
    };
    return this.ended;
  }

  tell(): void {
    this.told = true;
    this.wake();
  }

  sessionEnded(): void {
    this.withSession = true;
    this.tell();
  }

  failed(error: unknown): void {
    this.failure = { error };
    this.tell();
  }

  throwIfFailed(): void {
    if (this.failure) throw this.failure.error;
  }

  /** `busyWith` is told when it was not typed. */
  result(nowUs: number, timedOut: boolean, busyWith?: string): RunResult {
    const { name: run, seq, endSeq, ended, typed } = this;
    const completed = ended !== undefined && this.told;
    return {
      run,
      seq,
      typed,
      completed,
      timedOut: timedOut && !completed,
      completion: completed ? this.method : 'unknown',
      durationMs: Math.round((nowUs - this.startedUs) / 1000),
      ...(completed && ended),
      ...(completed && endSeq !== undefined && { endSeq }),
      ...(this.withSession && { ended: true }),
      ...(this.incomplete && !completed && { incomplete: true }),
      ...(this.cleared && { cleared: true }),
      ...(!typed && busyWith !== undefined && { busyWith }),
    };
  }

  private wake(): void {
    for (const listener of this.listeners) listener();
  }
}
