// The runs of one terminal: types commands, one at a time, and detects each end by the shell's marks or else by a
// sentinel. It does not guess: an end that is not reported stays unknown.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import type { Clock } from '../../base/clock.ts';
import { randomId } from '../../base/ids.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Params } from '../../protocol/operations.ts';
import type { RunFinishedNote, RunResult, RunStartedNote } from '../../protocol/run.ts';
import { waitUntil } from '../wait/wait-until.ts';
import type { Language } from './foreground.ts';
import type { Mark } from './marks.ts';
import { OneRun } from './one-run.ts';
import { plainText, runText } from './run-text.ts';
import type { ReaderTools } from './input-reader.ts';
import type { Sentinel } from './sentinel.ts';
import { Turns, type End, type Way } from './run-turns.ts';

export interface RunTools extends ReaderTools {
  readonly clock: Clock;
  /** Appends a note to the journal; returns its number. */
  readonly append: (note: RunStartedNote | RunFinishedNote) => number;
  /** Resolves when everything appended so far is visible. */
  readonly visible: () => Promise<void>;
  /** Writes bytes to the program without an input event. */
  readonly type: (bytes: Buffer) => Promise<void>;
  /** Output bytes so far. */
  readonly offset: () => number;
  readonly echoes: () => boolean;
  /** Makes a sentinel whose string and echo are removed from the output from now on. */
  readonly arm: (onStatus: (status: number) => void, language: Language | undefined) => Sentinel;
  readonly disarm: (sentinel: Sentinel) => void;
  /** The shell was started so that it makes marks. */
  readonly marks: boolean;
}

/** A run whose end is not reported is answered after this long without output. */
const QUIET_MS = 500;
/** Ended runs that are remembered. */
const KEPT_RUNS = 256;
/** To the end of the line, then delete all of it: line editors and the kernel understand it. */
const CLEAR_LINE = '\x05\x15';
const INTERRUPT = Buffer.from('\x03');
/* oxlint-disable no-control-regex */
/** Answers of a terminal to queries, and keys without text. */
const REPORTS = /\x1b(?:\[[\x20-\x3f]*[\x40-\x7e]|[\]P_][^\x07\x1b]*(?:\x07|\x1b\\)|O[\x40-\x7e])/g;
/** After these an edited line is empty. */
const LINE_DROPPED = /[\r\n\x03\x04\x15\x1a\x1c]/;
/* oxlint-enable no-control-regex */

export class Runs {
  private readonly tools: RunTools;
  private readonly known = new Map<string, OneRun>();
  private readonly turns: Turns;
  private over = false;
  private readonly quiet = new Map<OneRun, () => void>();
  /** A part of a line was typed. */
  private leftover = false;

  constructor(tools: RunTools) {
    this.tools = tools;
    this.turns = new Turns(tools, {
      type: (run, way) => this.type(run, way),
      ask: (run, language) => this.ask(run, language),
      interrupt: () => this.interrupt(),
      finish: (run, end) => this.finish(run, end),
    });
  }

  /** The shell waits for a command: input now is not a secret, although the terminal does not echo it. */
  get atPrompt(): boolean {
    return this.turns.atPrompt;
  }

  /** Types a command and waits for its end. A known name is only waited for. */
  async run(request: Params<'run'>, signal?: CancelSignal): Promise<RunResult> {
    const earlier = request.run === undefined ? undefined : this.known.get(request.run);
    if (earlier && earlier.command !== request.command) {
      throw new HoldfastError('key_conflict', `The run "${earlier.name}" has another command.`);
    }
    const run = earlier ?? this.register(request);
    if (request.wait === false) return this.typed(run);
    return this.outcome(run, request.timeoutMs, signal);
  }

  async wait(
    name: string,
    timeoutMs: number | undefined,
    signal?: CancelSignal,
  ): Promise<RunResult> {
    const run = this.known.get(name);
    if (!run) {
      const problem = 'This terminal knows no run of that name.';
      throw new HoldfastError('not_found', problem, { run: name.slice(0, 64) });
    }
    return this.outcome(run, timeoutMs, signal);
  }

  /** From here on the run is known and will be typed in its turn. */
  private register({ run: name = randomId(), command, wait, completion }: Params<'run'>): OneRun {
    if (this.over)
      throw new HoldfastError('not_running', 'The program of this terminal has ended.');
    const noWait = wait === false;
    const nowUs = this.tools.clock.nowUs();
    const run = new OneRun({ name, command, method: 'unknown', noWait, nowUs });
    this.known.set(run.name, run);
    this.forgetOld();
    // A command without a reported end is typed now, whatever reads it.
    if (completion === 'sentinel' && !this.turns.leadsToShell) this.type(run, 'together');
    else if (completion === 'none' || (noWait && !this.turns.isFree)) this.type(run, 'plain');
    else this.turns.add(run, completion === 'sentinel');
    return run;
  }

  private forgetOld(): void {
    for (const [name, run] of this.known) {
      if (this.known.size <= KEPT_RUNS) return;
      if (run.over) this.known.delete(name);
    }
  }

  private type(run: OneRun, way: Way): void {
    const clear = way !== 'plain' && this.leftover ? CLEAR_LINE : '';
    run.cleared = clear !== '';
    this.leftover = false;
    if (way === 'shell' || way === 'plain') {
      run.method = way === 'plain' ? 'unknown' : 'sentinel';
      const text = plainText(run.command);
      // After the echo of its first line; a line editor shows the line end itself.
      run.echoedLines = this.tools.edits() || this.tools.echoes() ? 1 : 0;
      if (way === 'plain') this.turns.otherInput(Buffer.from(text));
      this.begin(run, clear + text);
    } else if (way === 'marks') {
      run.method = 'marks';
      const text = runText(run.command, this.turns.pastes);
      run.submits = text.split('\r').length - 1;
      run.echoedLines = this.tools.echoes()
        ? run.submits
        : run.command.trimEnd().split('\n').length;
      this.begin(run, clear + text);
    } else {
      run.method = 'sentinel';
      const line = this.armFor(run, undefined);
      const text = `${plainText(run.command)}${line}\r`;
      this.turns.otherInput(Buffer.from(text));
      this.begin(run, clear + text);
    }
  }

  /** The start is recorded before anything is typed, so that no output comes before it. */
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

  /** Types the sentinel of a command that was typed before. */
  private ask(run: OneRun, language: Language | undefined): void {
    const line = this.armFor(run, language);
    this.tools.type(Buffer.from(`${line}\r`)).catch((error: unknown) => this.fail(run, error));
  }

  private armFor(run: OneRun, language: Language | undefined): string {
    if (run.sentinel) this.tools.disarm(run.sentinel);
    run.sentinel = this.tools.arm((status) => this.sentinelSeen(run, status), language);
    return run.sentinel.line;
  }

  private interrupt(): void {
    this.leftover = false;
    this.turns.otherInput(INTERRUPT);
    this.tools.type(INTERRUPT).catch(() => undefined);
  }

  mark(mark: Mark): void {
    this.turns.mark(mark);
  }

  output(bytes: Buffer): void {
    this.turns.output(bytes);
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
    const lines = bytes.toString('latin1').replace(REPORTS, '').split(LINE_DROPPED);
    this.leftover = lines.at(-1) !== '' || (lines.length === 1 && this.leftover);
    this.turns.otherInput(bytes);
  }

  /** The program of the terminal has ended: answers all waiters. */
  ended(): void {
    this.over = true;
    this.turns.close();
    for (const cancel of this.quiet.values()) cancel();
    this.quiet.clear();
    for (const run of this.known.values())
      if (!run.over) this.conclude(run, () => run.sessionEnded());
  }

  private sentinelSeen(run: OneRun, status: number): void {
    if (run.over) return;
    run.refused = run.complainedOf;
    this.turns.answered(run, status);
  }

  private finish(run: OneRun, { status, cwd }: End): void {
    const { clock, offset, append } = this.tools;
    const completion = run.method === 'marks' ? 'marks' : 'sentinel';
    // The status of a sentinel is the shell's: not that of a command that it did not run, or that replaced it.
    const itsOwn = completion === 'marks' || (run.entered === undefined && !run.refused);
    const facts = run.finished({
      status: itsOwn ? status : undefined,
      cwd,
      offset: offset(),
      nowUs: clock.nowUs(),
    });
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
    this.turns.drop(run);
    this.conclude(run, () => run.failed(error));
  }

  private conclude(run: OneRun, tell: () => void): void {
    if (run.sentinel) this.tools.disarm(run.sentinel);
    run.over = true;
    // Reported when its note is visible.
    this.tools.visible().then(tell, tell);
    this.turns.next();
  }

  private async typed(run: OneRun): Promise<RunResult> {
    await this.until(run, () => run.typed || run.isRecorded, undefined, undefined);
    return run.result(this.tools.clock.nowUs(), false);
  }

  private async outcome(
    run: OneRun,
    timeoutMs: number | undefined,
    signal: CancelSignal | undefined,
  ): Promise<RunResult> {
    const { clock } = this.tools;
    const met = await this.until(run, () => run.isRecorded || run.stuck, timeoutMs, signal);
    // It was never typed: it must not be typed when it has no waiters any more.
    const busyWith = run.awaited ? undefined : this.turns.withdraw(run);
    if (busyWith !== undefined) this.known.delete(run.name);
    return run.result(clock.nowUs(), !met || (run.stuck && !run.incomplete), busyWith);
  }

  private async until(
    run: OneRun,
    check: () => boolean,
    timeoutMs: number | undefined,
    signal: CancelSignal | undefined,
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
