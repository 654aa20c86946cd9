// One terminal: input, screen and waits. The process and its journal belong to the host; the screen is a view that is
// opened on first use.

import { answersOfScreen } from '../base/bytes/terminal-queries.ts';
import type { CancelSignal } from '../base/cancel-signal.ts';
import { systemClock, type Clock } from '../base/clock.ts';
import { pause } from '../protocol/cancellation.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { ProcessEvent } from '../protocol/event.ts';
import type { HostApi, Owner, Page, Results } from '../protocol/host-api.ts';
import type { Params } from '../protocol/operations.ts';
import type { ProcessInfo, TerminalSize } from '../protocol/process.ts';
import { followEvents, type Position } from '../base/follow-events.ts';
import { decodeRecords } from '../protocol/record.ts';
import type { RunResult } from '../protocol/run.ts';
import type { ScreenCondition } from '../protocol/screen-condition.ts';
import type { ScreenWait, ScreenWaitOptions } from '../screen/view/condition.ts';
import type { CheckpointStore } from '../screen/emulator/checkpoints.ts';
import { encodeKeys, encodePaste } from '../screen/view/keys.ts';
import { QueryWatch } from '../screen/emulator/queries.ts';
import type { Screen, SnapshotOptions } from '../screen/view/screen.ts';
import type { EventSource } from '../screen/emulator/replica.ts';
import type { Screens } from '../screen/view/screens.ts';
import type { Modes, Snapshot } from '../screen/view/snapshot.ts';
import type { View } from '../screen/view/view.ts';
import { runOutput, type RunOutput } from './run-output.ts';
import { terminalSource } from './terminal-source.ts';

export interface SessionOptions {
  readonly host: HostApi;
  /** By default the system's. */
  readonly clock?: Clock;
  readonly screens: () => Promise<Screens>;
  readonly checkpoints?: (process: ProcessInfo) => CheckpointStore;
  /** Whether this view answers terminal queries of the program while it runs. Only one view at a time may. */
  readonly answers: boolean;
  /** The event behind which queries are answered; by default the last one when the screen is there. */
  readonly answersAfter?: number;
}

export interface Watched {
  readonly screen: Screen;
  /** Resolves when no more output will come. */
  readonly programEnded: Promise<void>;
  readonly release: () => void;
}

interface Opened {
  readonly screens: Screens;
  readonly screen: Screen;
}

const PAGE_BYTES = 1024 * 1024;
/** The timeout of one long poll. */
const FOLLOW_MS = 25_000;
/** A screen that nobody looks at is advanced when it is this far behind, so that no look takes long. */
const BEHIND_BYTES = 2 * 1024 * 1024;
/** The pause before a retry. */
const RETRY_MS = 1000;

export class TerminalSession {
  readonly owner: Owner;
  readonly id: string;
  /** The size at the start of the journal. */
  readonly firstSize: TerminalSize;
  readonly source: EventSource;
  private readonly options: SessionOptions;
  private opened: Promise<Opened> | undefined;
  private watchers = 0;
  private following: Promise<void> | undefined;
  private readonly progress = new ReadProgress();
  private readonly stop = new AbortController();

  constructor(process: ProcessInfo, firstSize: TerminalSize, options: SessionOptions) {
    this.owner = process.owner;
    this.id = process.id;
    this.firstSize = firstSize;
    this.options = options;
    this.source = terminalSource(options.host, this.owner, this.id);
  }

  private get host(): HostApi {
    return this.options.host;
  }

  info(): Promise<ProcessInfo> {
    return this.host.get(this.owner, { id: this.id });
  }

  type(text: string | Buffer, writeId?: string): Promise<Results['write']> {
    return this.write({ data: Buffer.from(text), as: 'text', writeId });
  }

  /** Bracketed only if the program asked for it; the text itself cannot end the paste. */
  async paste(text: string, writeId?: string, always = false): Promise<Results['write']> {
    const modes = await this.modes();
    const data = encodePaste(text, always ? { ...modes, bracketedPaste: true } : modes);
    return this.write({ data, as: 'paste', writeId });
  }

  async keys(keys: readonly string[], writeId?: string): Promise<Results['write']> {
    const data = encodeKeys(keys, await this.modes());
    return this.write({ data, as: 'keys', keys: [...keys], writeId });
  }

  run(params: Omit<Params<'run'>, 'id'>, signal?: CancelSignal): Promise<RunResult> {
    return this.host.run(this.owner, { id: this.id, ...params }, signal);
  }

  /** The output of one run. */
  runOutput(result: RunResult): Promise<RunOutput | undefined> {
    return runOutput(this.host, this.owner, this.id, result);
  }

  async modes(): Promise<Modes> {
    const screen = await this.current();
    return screen.modes();
  }

  /** All rows as objects, made in this thread: for the command line. */
  async snapshot(options: SnapshotOptions = {}): Promise<Snapshot> {
    const screen = await this.current();
    return screen.snapshot(options);
  }

  /** The screen in the form that crosses threads. */
  async view(options: SnapshotOptions = {}): Promise<View> {
    const screen = await this.current();
    return screen.view(options);
  }

  async isLarge(scrollback: boolean): Promise<boolean> {
    const { screen } = await (this.opened ??= this.open());
    return screen.isLarge(scrollback);
  }

  /** Keeps the screen current meanwhile. If the program exits first, its last screen is checked. */
  async wait(
    condition: ScreenCondition,
    options: ScreenWaitOptions,
  ): Promise<ScreenWait & { readonly ended?: true }> {
    const { screen, release, programEnded } = await this.watch();
    const stop = new AbortController();
    const { signal } = options;
    const abort = (): void => stop.abort();
    signal?.addEventListener('abort', abort);
    if (signal?.aborted === true) abort();
    try {
      const { screens } = await (this.opened ??= this.open());
      let ended = false;
      let problem: unknown;
      programEnded.then(
        () => {
          ended = true;
          stop.abort();
        },
        (error: unknown) => {
          problem = error;
          stop.abort();
        },
      );
      try {
        return await screens.wait(screen, condition, { ...options, signal: stop.signal });
      } catch (error) {
        if (signal?.aborted === true) throw error;
        // The program may still run: only its exit counts as its end.
        if (problem !== undefined) throw problem;
        if (!ended) throw error;
        const last = await screens.wait(screen, condition, { ...options, timeoutMs: 0 });
        return { ...last, timedOut: false, ended: true };
      }
    } finally {
      signal?.removeEventListener('abort', abort);
      release();
    }
  }

  /** Keeps the screen current until `release` is called. */
  async watch(): Promise<Watched> {
    this.watchers += 1;
    try {
      const programEnded = this.answerQueries();
      // The caller may handle the rejection later.
      programEnded.catch(() => undefined);
      return { screen: await this.current(), programEnded, release: () => (this.watchers -= 1) };
    } catch (error) {
      this.watchers -= 1;
      throw error;
    }
  }

  /**
   * Follows the output, so that terminal queries of the program are answered even if nobody looks. Resolves when the
   * program has exited, nobody watches any more or this session is closed; rejects when its events cannot be read any
   * more.
   */
  answerQueries(): Promise<void> {
    this.following ??= this.follow();
    return this.following;
  }

  async close(): Promise<void> {
    this.stop.abort();
    await this.following?.catch(() => undefined);
    await (await this.opened?.catch(() => undefined))?.screen.close();
  }

  private write(params: Omit<Params<'write'>, 'id'>): Promise<Results['write']> {
    return this.host.write(this.owner, { id: this.id, ...params });
  }

  /** The screen with all output so far. */
  private async current(): Promise<Screen> {
    this.opened ??= this.open();
    const { screen } = await this.opened;
    const { seq } = await this.info();
    // The follower answers queries of the program, so the screen must not advance past it.
    if (this.following)
      await Promise.race([this.progress.waitFor(seq), this.following]).catch(ignoreReadErrors);
    await screen.advance();
    return screen;
  }

  private async open(): Promise<Opened> {
    const screens = await this.options.screens();
    const reply = (data: Buffer): void => void this.answer(data);
    const { source, firstSize: size } = this;
    const checkpoints = this.options.checkpoints?.(await this.info());
    const { owner } = this;
    const options = { size, source, owner, ...(this.options.answers && { reply }) };
    return { screens, screen: screens.open({ ...options, ...(checkpoints && { checkpoints }) }) };
  }

  private async answer(data: Buffer): Promise<void> {
    try {
      // Answers that need no screen are the keeper's, where it gives them: they come at once, and while nobody looks.
      const { terminal } = await this.info();
      const text = data.toString('latin1');
      const left = terminal?.queries === 'keeper' ? answersOfScreen(text) : text;
      if (left !== '') await this.write({ data: Buffer.from(left, 'latin1'), isReply: true });
    } catch (error) {
      // The program has exited and does not wait for the answer.
      if (!(error instanceof HoldfastError)) throw error;
    }
  }

  private get isFollowed(): boolean {
    return this.watchers > 0 || this.options.answers;
  }

  private async follow(): Promise<void> {
    const queries = new QueryWatch();
    /** Events that were read but not fed to the screen yet; few, so that they need not be read again. */
    const waiting: ProcessEvent[] = [];
    let behind = 0;
    const { signal } = this.stop;
    try {
      const after = await this.begin();
      if (!this.isFollowed) return;
      for await (const page of followEvents((position) => this.nextPage(position), { after })) {
        const events = Array.from(decodeRecords(page.records));
        const asked = events.some((event) => event.kind === 'output' && queries.asks(event.data));
        waiting.push(...events);
        behind += page.records.length;
        if (this.watchers > 0 || asked || behind > BEHIND_BYTES) {
          behind = 0;
          await (await this.opened)?.screen.feed(waiting.splice(0), { live: true });
        }
        this.progress.advanceTo(page.nextAfter);
        if (!this.isFollowed) return;
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.following = undefined;
    }
  }

  /** The next page. Retries while a limit is reached or the keeper is being replaced. */
  private async nextPage(position: Position): Promise<Page> {
    const { signal } = this.stop;
    for (;;) {
      try {
        const params = { id: this.id, ...position, maxBytes: PAGE_BYTES, waitMs: FOLLOW_MS };
        return await this.host.read(this.owner, params, signal);
      } catch (error) {
        if (!(error instanceof HoldfastError) || !error.retryable) throw error;
        await pause(this.options.clock ?? systemClock, RETRY_MS, signal);
      }
    }
  }

  /** Starts at the present: earlier queries have gone unanswered already. */
  private async begin(): Promise<number> {
    this.opened ??= this.open();
    const { screen } = await this.opened;
    const { answersAfter = (await this.info()).seq } = this.options;
    const seq = Math.max(screen.seq, answersAfter);
    this.progress.advanceTo(seq);
    return seq;
  }
}

/** `programEnded` reports the error of the follower; a look reads the journal itself. */
function ignoreReadErrors(error: unknown): void {
  if (!(error instanceof HoldfastError)) throw error;
}

/** How far the follower has read, for looks that wait for it. */
class ReadProgress {
  private seq = 0;
  private waiting: { readonly seq: number; readonly reached: () => void }[] = [];

  waitFor(seq: number): Promise<void> | undefined {
    if (this.seq >= seq) return undefined;
    return new Promise((reached) => this.waiting.push({ seq, reached }));
  }

  advanceTo(seq: number): void {
    this.seq = seq;
    this.waiting = this.waiting.filter((each) => {
      if (each.seq > seq) return true;
      each.reached();
      return false;
    });
  }
}

/** The first size: in the `started` event, else the present one. */
export async function openSession(
  owner: Owner,
  id: string,
  options: SessionOptions,
): Promise<TerminalSession> {
  const process = await options.host.get(owner, { id });
  if (process.streams !== 'pty' || !process.size)
    throw new HoldfastError('not_a_terminal', `Process ${process.id} runs on pipes.`);
  const page = await options.host.read(process.owner, { id: process.id, maxBytes: 1 });
  const [first] = decodeRecords(page.records);
  const started = first?.kind === 'started' ? first.body : undefined;
  const size = (started?.['size'] as TerminalSize | undefined) ?? process.size;
  return new TerminalSession(process, size, options);
}
