// The terminal of a process: between child and journal it removes the shell's marks and our sentinels from the output,
// and informs the runs.

import { basename } from 'node:path';
import { TerminalQueries } from '../../base/bytes/terminal-queries.ts';
import type { CancelSignal } from '../../base/cancel-signal.ts';
import type { Clock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Params } from '../../protocol/operations.ts';
import type { TerminalSize } from '../../protocol/process.ts';
import type { MarkNote, RunResult, TerminalNote } from '../../protocol/run.ts';
import type { Journal } from '../../journal/write/journal.ts';
import { NoticeScanner } from '../attention/notices.ts';
import { ByteScanner } from './byte-scanner.ts';
import type { Child } from '../child/child.ts';
import { foregroundOf, type Foreground, type Language } from './foreground.ts';
import { Keyboard } from './keyboard.ts';
import { MarkPattern } from './marks.ts';
import { Runs } from './runs.ts';
import { Sentinel } from './sentinel.ts';

/** A program that sends more queries than this without reading wants no answers. */
const MOST_UNREAD_ANSWERS = 64;

export interface TerminalOptions {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly child: Child;
  readonly plan: {
    readonly argv: readonly string[];
    /** Authenticates the shell's marks; undefined if it makes none. */
    readonly nonce?: string;
  };
  /** The size, where queries are answered that need no screen. */
  readonly answerFor?: (() => TerminalSize) | undefined;
  /** Is given the number of each note. */
  readonly uncounted?: { add(seq: number): void };
  /** In order with all other input. */
  readonly write: (bytes: Buffer) => Promise<void>;
}

export class Terminal {
  private readonly clock: Clock;
  private readonly journal: Journal;
  private readonly uncounted: TerminalOptions['uncounted'];
  private readonly scanner: ByteScanner;
  private readonly runs: Runs;
  private readonly program: string;
  private readonly answer: ((bytes: Buffer) => void) | undefined;
  private over = false;
  private readonly scanNotices = new NoticeScanner();
  /** The last bell or notice of the program. */
  asked: { readonly text: string; readonly atMs: number } | undefined;
  readonly keyboard: Keyboard;

  constructor(options: TerminalOptions) {
    const { clock, journal, child, plan, write, answerFor, uncounted } = options;
    const { nonce, argv } = plan;
    this.clock = clock;
    this.journal = journal;
    this.uncounted = uncounted;
    this.program = basename(argv[0] ?? '');
    this.keyboard = new Keyboard(clock);
    this.answer = answerFor && this.answering(answerFor, write);
    this.scanner = new ByteScanner((bytes) => this.printed(bytes));
    this.runs = new Runs({
      clock,
      append: (note) => this.note(note),
      visible: () => journal.visible(),
      type: write,
      offset: () => journal.offset,
      unread: () => child.terminal?.unread() ?? false,
      unheard: () => child.terminal?.unheard() ?? false,
      echoes: () => child.echoes(),
      secret: () => child.terminal?.secret() ?? false,
      foreground: () => readerOf(child),
      edits: () => child.terminal?.edits() ?? false,
      arm: (onStatus, language) => this.arm(onStatus, language),
      disarm: (sentinel) => this.disarm(sentinel),
      marks: nonce !== undefined,
      root: child.pid,
      argv,
    });
    if (nonce !== undefined)
      this.scanner.patterns.add(new MarkPattern(nonce, (mark) => this.runs.mark(mark)));
  }

  output(bytes: Buffer): void {
    this.scanner.push(bytes);
  }

  /** Input that belongs to no run. A reply of the terminal itself is no answer to what the program asked. */
  input(bytes: Buffer, isReply = false): void {
    if (!isReply) this.asked = undefined;
    this.runs.otherInput(bytes);
  }

  /** Input is a command for the shell, and may be recorded although the terminal does not echo it. */
  get atPrompt(): boolean {
    return this.runs.atPrompt;
  }

  mark(label: string): number {
    if (this.over)
      throw new HoldfastError('not_running', 'The program of this terminal has ended.');
    return this.note({ note: 'mark', label } satisfies MarkNote);
  }

  /** Who had the keyboard is a part of the record. */
  holdKeyboard(holder: string, forMs: number, options: Parameters<Keyboard['take']>[2]): void {
    const action = this.keyboard.take(holder, forMs, options);
    if (action !== undefined && !this.over) this.note({ note: 'keyboard', action, holder });
  }

  async run(request: Params<'run'>, signal: CancelSignal | undefined): Promise<RunResult> {
    this.keyboard.admit(request.holder);
    this.asked = undefined;
    return this.runs.run(request, signal);
  }

  runWait(request: Params<'runWait'>, signal: CancelSignal | undefined): Promise<RunResult> {
    return this.runs.wait(request.run, request.timeoutMs, signal);
  }

  /** The child has ended: held bytes are output like any other. */
  release(): void {
    this.scanner.end();
  }

  exited(): void {
    this.over = true;
    this.runs.ended();
  }

  private printed(bytes: Buffer): void {
    this.journal.output('pty', bytes);
    this.runs.output(bytes);
    this.answer?.(bytes);
    const notice = this.scanNotices.scan(bytes);
    if (notice) this.asked = { ...notice, atMs: this.clock.wallMs() };
  }

  /** A client that holds the keyboard answers queries itself. A program that reads no answers gets no more. */
  private answering(
    size: () => TerminalSize,
    write: TerminalOptions['write'],
  ): (bytes: Buffer) => void {
    const queries = new TerminalQueries();
    let unread = 0;
    return (bytes) => {
      const answers = queries.answers(bytes, size).slice(0, MOST_UNREAD_ANSWERS);
      if (answers.length === 0 || unread >= MOST_UNREAD_ANSWERS || this.keyboard.isAnswered) return;
      unread += answers.length;
      write(Buffer.from(answers.join('')))
        // It has ended, or takes no input: it waits for no answer.
        .catch(() => undefined)
        .finally(() => (unread -= answers.length));
    };
  }

  private note(note: TerminalNote): number {
    const seq = this.journal.append({ kind: 'note', body: { ...note } });
    this.uncounted?.add(seq);
    return seq;
  }

  private arm(onStatus: (status: number) => void, language = this.language): Sentinel {
    const sentinel = new Sentinel(onStatus, language);
    const { string, echo, scrolledEcho } = sentinel;
    this.scanner.patterns.add(string).add(echo).add(scrolledEcho);
    return sentinel;
  }

  /** The program that was started, where the reader is unknown. */
  private get language(): Language {
    return this.program === 'fish' ? 'fish' : this.program.endsWith('csh') ? 'csh' : 'posix';
  }

  private disarm({ string, echo, scrolledEcho }: Sentinel): void {
    this.scanner.patterns.delete(string);
    this.scanner.patterns.delete(echo);
    this.scanner.patterns.delete(scrolledEcho);
  }
}

/** If the kernel does not report the foreground group, we look again; nothing is typed meanwhile. */
function readerOf({ terminal, pid }: Child): Foreground {
  try {
    return foregroundOf(() => terminal?.foreground());
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    return { kind: 'soon', name: '', pid };
  }
}
