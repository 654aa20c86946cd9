// One run, as far as it has come: typed, printing, ended; and who waits for it.

import type { RunFinishedNote, RunResult, RunCompletion } from '../protocol/run.ts';
import { Preamble } from './preamble.ts';
import type { Sentinel } from './sentinel.ts';

export interface RunFacts {
  readonly name: string;
  readonly command: string;
  readonly method: RunCompletion;
  readonly noWait: boolean;
  readonly nowUs: number;
}

type EndFacts = Pick<
  RunFinishedNote,
  'durationMs' | 'outputFrom' | 'outputTo' | 'exitCode' | 'cwd'
>;

const LINE_FEED = 10;

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
  private startedUs: number;
  private lastOutputUs: number;
  private outputFrom = 0;
  private outputTo: number | undefined;
  private began = false;
  private preamble: Preamble | undefined;
  private incomplete = false;
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
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  startedAt(offset: number, nowUs: number): void {
    this.outputFrom = offset;
    this.startedUs = this.lastOutputUs = nowUs;
  }

  wasTyped(): void {
    this.typed = true;
    this.wake();
  }

  /** The shell said so: exact. A command of several parts says it for each; the first counts. */
  outputBegins(offset: number, early: boolean): void {
    if (this.began) return;
    this.began = true;
    if (early) this.preamble = new Preamble();
    this.incomplete = false;
    this.outputFrom = offset;
  }

  /** The shell said so. A shell within this one may have said it before: the last counts. */
  outputEnds(offset: number): void {
    this.outputTo = offset;
  }

  asksForMore(offset: number): void {
    this.incomplete = true;
    if (!this.began) this.outputFrom = Math.max(this.outputFrom, offset);
  }

  get waitsForOutput(): boolean {
    return this.preamble !== undefined || (!this.began && this.echoedLines > 0);
  }

  /** Bytes that have just been printed, the last of them at `offset`. */
  printed(bytes: Buffer, offset: number): void {
    if (this.preamble) this.passPreamble(this.preamble, bytes);
    else this.passEcho(bytes, offset);
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
  }

  quietSince(nowUs: number): number {
    return this.typed ? (nowUs - this.lastOutputUs) / 1000 : 0;
  }

  heard(nowUs: number): void {
    this.lastOutputUs = nowUs;
  }

  finished(end: {
    status: number;
    cwd: string | undefined;
    offset: number;
    nowUs: number;
  }): EndFacts {
    const { status, cwd, offset, nowUs } = end;
    const outputTo = this.outputTo ?? offset;
    this.ended = {
      exitCode: status,
      ...(cwd !== undefined && { cwd }),
      durationMs: Math.round((nowUs - this.startedUs) / 1000),
      outputFrom: Math.min(this.outputFrom, outputTo),
      outputTo,
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

  result(nowUs: number, timedOut: boolean): RunResult {
    const { name: run, seq, endSeq, ended } = this;
    const completed = ended !== undefined && this.told;
    return {
      run,
      seq,
      completed,
      timedOut: timedOut && !completed,
      completion: completed ? this.method : 'unknown',
      durationMs: Math.round((nowUs - this.startedUs) / 1000),
      ...(completed && ended),
      ...(completed && endSeq !== undefined && { endSeq }),
      ...(this.withSession && { ended: true }),
      ...(this.incomplete && !completed && { incomplete: true }),
    };
  }

  private wake(): void {
    for (const listener of this.listeners) listener();
  }
}
