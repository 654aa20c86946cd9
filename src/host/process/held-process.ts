// One process, from its start until it is deleted: its journal, its child while it lives, and its outcome. Exit,
// closing and settling are separate facts, each reported once, none waiting for another.

import { HoldfastError } from '../../protocol/errors.ts';
import type { Stream } from '../../protocol/event.ts';
import type { Cause } from '../../protocol/confinement/confinement.ts';
import type { Results } from '../../protocol/host-api.ts';
import type { Outcome, ProcessInfo, ProcessState, TerminalSize } from '../../protocol/process.ts';
import { EndedJournal } from '../../journal/read/ended-journal.ts';
import { Journal } from '../../journal/write/journal.ts';
import { ResourceUse } from './resource-use.ts';
import { UncountedEvents } from './uncounted-events.ts';
import type { Child, ChildListener, ExitStatus, RootUse } from '../child/child.ts';
import { endingOf, type Ending, type ProcessFacts } from './facts.ts';
import { inputBodies, InputLedger, type InputMeaning } from './input-ledger.ts';
import { infoOf } from './process-info.ts';
import { Backpressure, type PacedRead } from './backpressure.ts';
import { loadPosix } from '../../system/posix.ts';
import { nowTicks } from '../../system/proc-table.ts';
import { causesAtExit, outcomeOf } from './outcome.ts';
import type { ProcessDeps } from './process-deps.ts';
import { Terminal, type TerminalOptions } from '../terminal/terminal.ts';

export class HeldProcess implements ChildListener {
  readonly facts: ProcessFacts;
  readonly uncounted = new UncountedEvents();
  readonly use: ResourceUse;
  /** Also what the host ended it for, because of a limit that it watches. */
  causes: readonly Cause[] = [];
  /** In the order of starting, given by the registry. */
  number = 0;
  journal: Journal | EndedJournal;
  outcome: Outcome | undefined;
  exitedAtMs: number | undefined;
  closedAtMs: number | undefined;
  /** Monotonic, for retention: the wall clock may jump. */
  closedAtUs: number | undefined;
  settled = false;
  /** Deleted: nothing of it changes any more, and its files are removed. */
  forgotten = false;
  size: TerminalSize | undefined;
  /** The root has not been reaped, so its pid cannot be reused and its group may be signalled by number. */
  rootAlive = true;
  /** Of a program in a sandbox: resolves when it begins. A signal before that would be lost. */
  ready: Promise<void> | undefined;
  /** When it was reaped, on the kernel's clock; 0 if unknown. */
  reapedAtTicks = 0;
  private readonly setting: ProcessDeps;
  private readonly startedUs: number;
  private exitedUs: number | undefined;
  private child: Child | undefined;
  /** Undefined on pipes, and for a process of an earlier keeper. */
  tty: Terminal | undefined;
  private streamsEnded = false;
  private ledger: InputLedger | undefined;
  private pacing: Backpressure | undefined;
  private readonly listeners = new Set<() => void>();
  private wakeHeld = false;
  private wakeDue = false;
  /** The last sender of each signal, by the signal's name. */
  private sent: Map<string, string> | undefined;
  private timedOutAfterMs: number | undefined;
  /** The ending as soon as it happened; reported when its event is visible. */
  private known: { readonly outcome: Outcome; readonly exitedAtMs: number } | undefined;
  private ending: Ending | undefined;
  lastOutputAtMs: number | undefined;

  constructor(facts: ProcessFacts, journal: Journal | EndedJournal, setting: ProcessDeps) {
    this.facts = facts;
    this.journal = journal;
    this.setting = setting;
    this.startedUs = setting.clock.nowUs();
    this.use = new ResourceUse(setting.groupUse);
    this.size = facts.size;
    if (journal instanceof Journal) journal.onGrowth(() => this.wake());
  }

  attach(child: Child, plan: TerminalOptions['plan']): void {
    this.child = child;
    const { journal, setting, facts, uncounted } = this;
    if (facts.streams !== 'pty' || !(journal instanceof Journal)) return;
    const write = async (bytes: Buffer): Promise<void> => {
      const input = this.inputOf();
      await this.input.write(bytes, undefined, () => () => input.write(bytes));
    };
    const size = (): TerminalSize => this.size ?? { cols: 80, rows: 24 };
    const answerFor = facts.terminal?.queries === 'keeper' ? size : undefined;
    this.tty = new Terminal({ ...setting, journal, child, plan, write, answerFor, uncounted });
  }

  /** Made at the first use: most processes get no input. */
  private get input(): InputLedger {
    return (this.ledger ??= new InputLedger(this.setting));
  }

  /** Its terminal, ended or not. */
  get terminal(): Terminal {
    if (this.tty) return this.tty;
    if (this.facts.streams === 'pty') throw this.notRunning();
    const problem = `Process ${this.facts.id} runs on pipes, not on a terminal.`;
    throw new HoldfastError('not_a_terminal', problem);
  }

  /** The foreground process group. */
  foreground(): number | undefined {
    return this.rootAlive ? this.child?.terminal?.foreground() : undefined;
  }

  /** Restores an ended process from disk. */
  restore(ending: Ending): void {
    this.ending = ending;
    this.use.restore(ending.usage);
    this.causes = ending.causes ?? [];
    this.outcome = ending.outcome;
    this.exitedAtMs = ending.exitedAtMs;
    this.closedAtMs = ending.closedAtMs;
    const agoMs = Math.max(0, this.setting.clock.wallMs() - ending.closedAtMs);
    this.closedAtUs = this.setting.clock.nowUs() - agoMs * 1000;
    this.lastOutputAtMs = ending.lastOutputAtMs;
    this.rootAlive = false;
    this.streamsEnded = true;
  }

  get state(): ProcessState {
    if (this.outcome?.kind === 'lost') return 'lost';
    if (this.closedAtMs !== undefined) return 'closed';
    return this.outcome === undefined ? 'running' : 'exited';
  }

  get live(): boolean {
    return this.closedAtMs === undefined;
  }

  /** Called after every visible growth and every change of state. Returns a function that unsubscribes. */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  wake(): void {
    this.wakeDue = this.wakeHeld;
    if (this.wakeHeld) return;
    for (const listener of this.listeners) listener();
  }

  /** Deletes it: its waiters get `not_found`. */
  forget(): void {
    this.forgotten = true;
    if (this.rootAlive) this.tty?.exited();
    this.wake();
  }

  /** The error for a process that was deleted meanwhile. */
  notFound(): HoldfastError {
    const { id } = this.facts;
    return new HoldfastError('not_found', `Process "${id}" was removed.`, { id });
  }

  output(stream: Stream, bytes: Buffer): void {
    const { journal } = this;
    if (!(journal instanceof Journal)) return;
    if (this.tty) this.tty.output(bytes);
    else journal.output(stream, bytes);
    this.lastOutputAtMs = this.setting.clock.wallMs();
    if (this.pacing?.exceeded(journal.offset)) this.child?.pause();
    if (!journal.full) return;
    this.child?.pause();
    journal.whenDrained(() => this.goOn());
  }

  /** A reader asks for backpressure. */
  pace(read: PacedRead): void {
    this.pacing ??= new Backpressure(this.setting.clock, () => this.goOn());
    this.pacing.read(read, this.journal.visibleOffset);
  }

  private goOn(): void {
    const { journal } = this;
    if (this.pacing?.holding || (journal instanceof Journal && journal.full)) return;
    this.child?.resume();
  }

  exited(status: ExitStatus, used?: RootUse): void {
    const { clock, watcher } = this.setting;
    this.rootAlive = false;
    this.reapedAtTicks = loadPosix()?.bootTicks() ?? nowTicks();
    this.exitedUs = clock.nowUs();
    this.use.atExit(used);
    const { use } = this;
    const { confinement: limits } = this.facts;
    const outcome = outcomeOf(status, {
      sentBy: this.sent,
      timedOutAfterMs: this.timedOutAfterMs,
      memoryVictims: use.group?.memoryVictims ?? 0,
      wasWrapped: limits?.hidden?.by === 'bubblewrap',
    });
    this.causes = causesAtExit(this.causes, { status, use, limits });
    const exitedAtMs = clock.wallMs();
    this.known = { outcome, exitedAtMs };
    this.tty?.release();
    this.append({ kind: 'exited', body: { outcome } });
    this.tty?.exited();
    const closing = this.closeIfDone();
    this.whenVisible(() => {
      this.outcome = outcome;
      this.exitedAtMs = exitedAtMs;
      watcher.exited(this);
      if (closing) this.closed();
      else this.wake();
    });
  }

  ended(): void {
    this.streamsEnded = true;
    this.tty?.release();
    if (this.closeIfDone()) this.whenVisible(() => this.closed());
  }

  /** Milliseconds since the last output, or since the start. */
  quietMs(): number {
    const since = this.journal instanceof Journal ? this.journal.lastOutputUs : undefined;
    return (this.setting.clock.nowUs() - (since ?? this.startedUs)) / 1000;
  }

  /** Milliseconds since the exit by the monotonic clock; 0 before it. */
  sinceExitMs(): number {
    const { exitedUs } = this;
    return exitedUs === undefined ? 0 : (this.setting.clock.nowUs() - exitedUs) / 1000;
  }

  async write(data: Buffer, meant: InputMeaning = {}): Promise<Results['write']> {
    this.tty?.keyboard.admit(meant.holder, meant.isReply);
    let seq = this.journal.visibleSeq;
    const written = await this.input.write(data, meant.writeId, () => {
      const child = this.inputOf();
      return () => {
        const seen = child.echoes() || this.tty?.atPrompt === true;
        const keep = this.setting.recordInput && seen;
        for (const body of inputBodies(data, meant, keep))
          seq = this.append({ kind: 'input', body });
        this.tty?.input(data, meant.isReply);
        return child.write(data);
      };
    });
    return { ...written, seq };
  }

  endInput(): void {
    const child = this.inputOf();
    this.append({ kind: 'input', body: { bytes: 0, eof: true } });
    void this.input.afterAll(() => child.endInput());
  }

  resize(size: TerminalSize): number {
    if (this.facts.streams !== 'pty') {
      const problem = `Process ${this.facts.id} runs on pipes and has no size.`;
      throw new HoldfastError('not_a_terminal', problem);
    }
    if (!this.rootAlive || !this.child) throw this.notRunning();
    this.child.resize(size);
    this.size = size;
    return this.append({ kind: 'resize', body: size });
  }

  /** Records a signal that was sent, with its sender for the outcome. */
  noteSignal(signal: string, by: string, escapees: readonly number[]): void {
    (this.sent ??= new Map()).set(signal, by);
    if (this.live)
      this.append({
        kind: 'signal',
        body: { signal, by, ...(escapees.length > 0 && { escapees }) },
      });
  }

  noteTimeout(afterMs: number): void {
    if (this.rootAlive) this.timedOutAfterMs = afterMs;
  }

  notRunning(): HoldfastError {
    return new HoldfastError('not_running', `Process ${this.facts.id} is not running.`, {
      state: this.state,
    });
  }

  info(): ProcessInfo {
    return infoOf(this);
  }

  /** Releases the child: it has closed, or the host is closing and has ended everything itself. */
  abandon(): void {
    this.child?.release();
    this.child = undefined;
  }

  durationMs(): number {
    if (this.ending) return this.ending.durationMs;
    return Math.round(((this.exitedUs ?? this.setting.clock.nowUs()) - this.startedUs) / 1000);
  }

  /** True if the last event has been appended; call `closed` when that is visible. */
  private closeIfDone(): boolean {
    const { known, journal } = this;
    if (!this.streamsEnded || !known || this.ending || !(journal instanceof Journal)) return false;
    this.ending = endingOf(this, known, this.setting.clock);
    journal.appendClosed({ facts: this.facts, ending: this.ending });
    return true;
  }

  private closed(): void {
    const { clock, watcher } = this.setting;
    this.closedAtMs = this.ending?.closedAtMs;
    this.closedAtUs = clock.nowUs();
    this.abandon();
    this.ledger?.close();
    this.pacing?.gone();
    this.wake();
    watcher.closed(this);
  }

  private inputOf(): Child {
    if (!this.rootAlive && this.streamsEnded) throw this.notRunning();
    if (this.facts.stdin !== 'pipe' || !this.child || this.ledger?.ended === true) {
      throw new HoldfastError('stdin_closed', `Process ${this.facts.id} has no open stdin.`);
    }
    return this.child;
  }

  /** Number of the event; of the newest event if nothing can be added any more. */
  private append(event: Parameters<Journal['append']>[0]): number {
    const { journal } = this;
    if (!(journal instanceof Journal) || this.ending) return journal.visibleSeq;
    const seq = journal.append(event);
    if (event.kind !== 'exited') this.uncounted.add(seq);
    return seq;
  }

  /** Runs `then` when everything appended is visible: usually now. */
  private whenVisible(then: () => void): void {
    const { journal } = this;
    if (!(journal instanceof Journal)) return;
    const target = journal.seq;
    // `then` wakes the waiters once; the growth alone must not wake them.
    this.wakeHeld = true;
    journal.flush();
    this.wakeHeld = false;
    if (journal.visibleSeq >= target) {
      then();
      return;
    }
    if (this.wakeDue) this.wake();
    journal.visible().then(then, (error: unknown) => {
      if (!this.forgotten) throw error;
    });
  }

  /** Once everything is on disk, only the positions of its files are kept. */
  releaseJournal(): void {
    const { journal } = this;
    if (!(journal instanceof Journal) || !journal.settledOnDisk) return;
    const { visibleSeq: seq, visibleOffset: offset, lostBytes } = journal;
    journal.release();
    this.journal = new EndedJournal(journal.segments(), { seq, offset, lostBytes });
  }
}
