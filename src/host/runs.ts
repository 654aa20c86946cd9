// The runs of one terminal: types commands, one at a time where the shell makes marks, and knows each one's end by the
// shell's marks or by its sentinel. Nothing here guesses: an end that nobody told stays unknown.

import type { Clock } from '../base/clock.ts';
import { randomId } from '../base/ids.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { Params } from '../protocol/operations.ts';
import type { RunFinishedNote, RunResult, RunStartedNote } from '../protocol/run.ts';
import { waitUntil } from '../journal/wait-until.ts';
import type { Mark } from './marks.ts';
import { OneRun } from './one-run.ts';
import { Prompt } from './prompt.ts';
import { plainText, runText } from './run-text.ts';
import type { Sentinel } from './sentinel.ts';

export interface RunTools {
  readonly clock: Clock;
  /** Puts a note into the journal; answers its number. */
  readonly append: (note: RunStartedNote | RunFinishedNote) => number;
  /** Resolves when everything appended so far can be read. */
  readonly visible: () => Promise<void>;
  /** Gives bytes to the program, without a record of their own. */
  readonly type: (bytes: Buffer) => Promise<void>;
  /** Output bytes so far. */
  readonly offset: () => number;
  /** Bytes typed that no program has read yet. */
  readonly unread: () => number;
  readonly echoes: () => boolean;
  /** A secret is being asked for: what is typed is not to be recorded. */
  readonly secret: () => boolean;
  /** Makes a sentinel whose string and echo are taken out of the output from now on. */
  readonly arm: (told: (status: number) => void) => Sentinel;
  readonly disarm: (sentinel: Sentinel) => void;
  /** The shell was started so that it makes marks. */
  readonly marks: boolean;
}

/** How long a shell that should make marks may take until its first one. */
const FIRST_MARK_MS = 10_000;
/** A run whose end nobody tells is answered when nothing was printed for so long. */
const QUIET_MS = 500;
/** Ended runs that can still be asked for. */
const KEPT_RUNS = 256;
export class Runs {
  private readonly tools: RunTools;
  private readonly known = new Map<string, OneRun>();
  /** Not typed yet: wait for the shell's prompt. */
  private readonly queue: OneRun[] = [];
  /** Typed at the prompt; the next end that the shell tells is its own. */
  private current: OneRun | undefined;
  private readonly prompt: Prompt;
  private over = false;
  private gaveUpOnMarks = false;
  private readonly quiet = new Map<OneRun, () => void>();
  private cancelTimer: (() => void) | undefined;
  private pastes = false;

  constructor(tools: RunTools) {
    this.tools = tools;
    const { clock, unread } = tools;
    this.prompt = new Prompt({ clock, unread, ready: () => this.next() });
  }

  /** The shell waits for a command: what is typed now is no secret, though it is not echoed by the terminal. */
  get atPrompt(): boolean {
    return this.prompt.near;
  }

  /** Types a command and waits for its end. A name that is known is waited for again. */
  async run(request: Params<'run'>, signal?: AbortSignal): Promise<RunResult> {
    const earlier = request.run === undefined ? undefined : this.known.get(request.run);
    if (earlier && earlier.command !== request.command) {
      throw new HoldfastError('key_conflict', `The run "${earlier.name}" has another command.`);
    }
    const run = earlier ?? this.register(this.prepare(request));
    if (request.wait === false) return this.typed(run);
    return this.outcome(run, request.timeoutMs, signal);
  }

  async wait(
    name: string,
    timeoutMs: number | undefined,
    signal?: AbortSignal,
  ): Promise<RunResult> {
    const run = this.known.get(name);
    if (!run) {
      const problem = 'This terminal knows no run of that name.';
      throw new HoldfastError('not_found', problem, { run: name.slice(0, 64) });
    }
    return this.outcome(run, timeoutMs, signal);
  }

  /** Decides how the end will be known. Nothing has happened yet. */
  private prepare({
    run: name = randomId(),
    command,
    wait,
    completion = 'auto',
  }: Params<'run'>): OneRun {
    const noWait = wait === false;
    const marks = this.prompt.seen || (this.tools.marks && !this.gaveUpOnMarks);
    const marked = completion === 'auto' && marks;
    // What is only to be typed is typed now, whoever reads it.
    const tracked = marked && (!noWait || this.free);
    const method = completion === 'sentinel' ? 'sentinel' : tracked ? 'marks' : 'unknown';
    return new OneRun({ name, command, method, noWait, nowUs: this.tools.clock.nowUs() });
  }

  private get free(): boolean {
    return this.prompt.ready && this.current === undefined && this.queue.length === 0;
  }

  /** From here on it is known and its turn will come. */
  private register(run: OneRun): OneRun {
    if (this.over)
      throw new HoldfastError('not_running', 'The program of this terminal has ended.');
    this.known.set(run.name, run);
    this.forgetOld();
    if (run.method === 'marks') {
      this.queue.push(run);
      if (!this.prompt.seen) this.waitForMarks();
      this.next();
    } else {
      this.typeNow(run);
    }
    return run;
  }

  private forgetOld(): void {
    for (const [name, run] of this.known) {
      if (this.known.size <= KEPT_RUNS) return;
      if (run.over) this.known.delete(name);
    }
  }

  /** The next one in the queue, when the shell waits for a command. */
  private next(): void {
    if (!this.prompt.ready || this.current) return;
    const run = this.queue.shift();
    if (!run) return;
    this.current = run;
    this.prompt.take();
    const text = runText(run.command, this.pastes);
    run.echoedLines = this.tools.echoes() ? text.split('\r').length - 1 : 0;
    this.begin(run, text);
  }

  private typeNow(run: OneRun): void {
    let text = plainText(run.command);
    if (run.method === 'sentinel') {
      run.sentinel = this.tools.arm((status) => this.sentinelSeen(run, status));
      text += `${run.sentinel.line}\r`;
    }
    this.prompt.otherInput(Buffer.from(text));
    this.begin(run, text);
  }

  /** The start is noted before anything is typed: no answer can stand before its question. */
  private begin(run: OneRun, text: string): void {
    const { name, command, method: completion, noWait } = run;
    try {
      const shown = completion === 'marks' || !this.tools.secret();
      run.seq = this.tools.append({
        note: 'run',
        run: name,
        ...(shown && { command }),
        completion,
        ...(noWait && { noWait }),
      });
      run.startedAt(this.tools.offset(), this.tools.clock.nowUs());
    } catch (error) {
      this.fail(run, error);
      return;
    }
    this.tools.type(Buffer.from(text)).then(
      () => {
        run.wasTyped();
        if (run.method === 'unknown' && !this.over) this.watchQuiet(run);
      },
      (error: unknown) => this.fail(run, error),
    );
  }

  mark(mark: Mark): void {
    this.cancelTimer?.();
    const { current } = this;
    if (mark.kind === 'begin') current?.outputBegins(this.tools.offset(), mark.early === true);
    if (mark.kind === 'over') current?.outputEnds(this.tools.offset());
    if (mark.kind === 'more') current?.asksForMore(this.tools.offset());
    if (mark.kind === 'end') {
      this.current = undefined;
      this.pastes = false;
      if (current) this.finish(current, 'marks', mark.status, mark.cwd);
    }
    this.prompt.mark(mark.kind);
  }

  /** A line editor takes pastes whole: it says so between the end of a command and the prompt. */
  output(bytes: Buffer): void {
    const { current } = this;
    if (this.prompt.drawing) {
      if (bytes.includes('\x1b[?2004h')) this.pastes = true;
    } else if (current?.waitsForOutput) {
      current.printed(bytes, this.tools.offset());
    }
    for (const run of this.quiet.keys()) run.heard(this.tools.clock.nowUs());
  }

  private watchQuiet(run: OneRun): void {
    const left = QUIET_MS - run.quietSince(this.tools.clock.nowUs());
    if (left > 0) {
      this.quiet.set(
        run,
        this.tools.clock.after(Math.ceil(left), () => this.watchQuiet(run)),
      );
      return;
    }
    this.quiet.delete(run);
    this.conclude(run, () => run.tell());
  }

  otherInput(bytes: Buffer): void {
    this.prompt.otherInput(bytes);
  }

  /** The program of the terminal has ended: nobody is left waiting. */
  ended(): void {
    this.over = true;
    this.cancelTimer?.();
    this.prompt.close();
    for (const cancel of this.quiet.values()) cancel();
    this.quiet.clear();
    this.queue.length = 0;
    this.current = undefined;
    for (const run of this.known.values())
      if (!run.over) this.conclude(run, () => run.sessionEnded());
  }

  private waitForMarks(): void {
    this.cancelTimer?.();
    this.cancelTimer = this.tools.clock.after(FIRST_MARK_MS, () => this.noMarks());
  }

  /** The shell makes none after all: what waits is typed, and its end will be unknown. */
  private noMarks(): void {
    this.gaveUpOnMarks = true;
    for (const run of this.queue.splice(0)) {
      run.method = 'unknown';
      this.typeNow(run);
    }
  }

  private sentinelSeen(run: OneRun, status: number): void {
    if (!run.over) this.finish(run, 'sentinel', status, undefined);
  }

  private finish(
    run: OneRun,
    completion: 'marks' | 'sentinel',
    status: number,
    cwd: string | undefined,
  ): void {
    const { clock, offset, append } = this.tools;
    const facts = run.finished({ status, cwd, offset: offset(), nowUs: clock.nowUs() });
    try {
      run.endSeq = append({
        note: 'runEnd',
        run: run.name,
        startSeq: run.seq,
        completion,
        ...facts,
      });
    } catch (error) {
      this.fail(run, error);
      return;
    }
    this.conclude(run, () => run.tell());
  }

  private fail(run: OneRun, error: unknown): void {
    if (this.current === run) this.current = undefined;
    this.conclude(run, () => run.failed(error));
  }

  private conclude(run: OneRun, tell: () => void): void {
    if (run.sentinel) this.tools.disarm(run.sentinel);
    run.over = true;
    // Told when its note can be read.
    this.tools.visible().then(tell, tell);
  }

  private async typed(run: OneRun): Promise<RunResult> {
    await this.until(run, () => run.typed || run.told, undefined, undefined);
    return run.result(this.tools.clock.nowUs(), false);
  }

  private async outcome(
    run: OneRun,
    timeoutMs: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<RunResult> {
    const { clock } = this.tools;
    const met = await this.until(run, () => run.told, timeoutMs, signal);
    const queued = this.queue.indexOf(run);
    // Never typed: it must not be typed when nobody waits for it any more.
    if (!met && queued >= 0) {
      this.queue.splice(queued, 1);
      this.known.delete(run.name);
    }
    return run.result(clock.nowUs(), !met);
  }

  private async until(
    run: OneRun,
    check: () => boolean,
    timeoutMs: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const met = await waitUntil(() => check() || undefined, {
      clock: this.tools.clock,
      timeoutMs,
      signal,
      subscribe: (wake) => run.onChange(wake),
    });
    run.throwIfFailed();
    return met === true;
  }
}
