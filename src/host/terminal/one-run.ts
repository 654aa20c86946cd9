// One run: typed, printing, ended; and its waiters.

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
  /** Undefined if the shell cannot report it. */
  readonly status: number | undefined;
  readonly cwd?: string | undefined;
  readonly offset: number;
  readonly nowUs: number;
}

const LINE_FEED = 10;
/** bash leaves its paste mode between the line that it read and the next output. */
const PASTE_MODE_OFF = '\x1b[?2004l\r';
/** Enough of the output to find a shell's complaint about a "!". */
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
  /** Its end has been recorded: waiters may get the answer. */
  isRecorded = false;
  /** Line ends that the terminal echoes; without a "begin" mark the output starts after them. */
  echoedLines = 0;
  /** How often Enter was typed for it. */
  submits = 1;
  /** The shell that it was typed into, if a sentinel reports its end. */
  shell: string | undefined;
  /** Another shell reads the terminal since. */
  entered: string | undefined;
  /** The shell refused it. */
  refused = false;
  /** Text at the prompt was deleted first. */
  cleared = false;
  /** No more can be known for now: all waiters are answered, and the end may still come. */
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
  /** The bytes directly after the echo, as long as they may be the end of the paste mode. */
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

  /** It had waiters, and has none any more. */
  get abandoned(): boolean {
    return this.waitedFor && this.listeners.size === 0;
  }

  get awaited(): boolean {
    return this.listeners.size > 0;
  }

  /** The shell reported that it runs it. */
  get began(): boolean {
    return this.begun;
  }

  /** The shell has read all of it, and asks for more or does not begin it: something in it is not closed. */
  get incomplete(): boolean {
    return !this.begun && (this.held || this.mores >= this.submits);
  }

  /** The shell has read it and continues to edit it. */
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

  /** The shell reported the begin. A command of several parts reports it for each; the first counts. */
  outputBegins(offset: number, early: boolean): void {
    if (this.begun) return;
    this.begun = true;
    if (early) this.preamble = new Preamble();
    this.outputFrom = offset;
  }

  /** The shell reported the end. An inner shell may have reported one before: the last counts. */
  outputEnds(offset: number): void {
    this.outputTo = offset;
  }

  /** Its sentinel is typed: the shell waits for a command. */
  sentinelTyped(offset: number): void {
    this.shown.typedAt(offset);
  }

  /** Its sentinel was printed. */
  sentinelPrinted(offset: number): void {
    this.shown.printedAt(offset);
  }

  /** The prompt after it has been drawn, and again after its sentinel. */
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

  /** New output, whose end is at `offset`. */
  printed(bytes: Buffer, offset: number): void {
    if (this.preamble) this.passPreamble(this.preamble, bytes);
    else if (this.waitsForOutput) this.passEcho(bytes, offset);
    else this.passPasteMode(bytes);
    this.shown.printed(bytes);
    if (this.method !== 'sentinel' || !this.command.includes('!')) return;
    const left = COMPLAINT_BYTES - this.complaint.length;
    if (left > 0) this.complaint += bytes.toString('latin1', 0, left);
  }

  /** A shell could not expand "!" and has run nothing: its status does not belong to this command. */
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
      // Each line of several is echoed when the shell reads it.
      ...((mixed || (this.method === 'sentinel' && /[\r\n]./.test(this.command))) && {
        outputMixed: true as const,
      }),
    };
    return this.ended;
  }

  tell(): void {
    this.isRecorded = true;
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

  /** `busyWith` is set if it was not typed. */
  result(nowUs: number, timedOut: boolean, busyWith?: string): RunResult {
    const { name: run, seq, endSeq, ended, typed } = this;
    const completed = ended !== undefined && this.isRecorded;
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
