// A terminal as whoever drives it sees it: what is typed into it, what its screen shows, what can be waited for. The
// process and its journal are the host's; the screen is a view that is opened when somebody looks.

import { HoldfastError } from '../../protocol/errors.ts';
import type { ProcessEvent } from '../../protocol/event.ts';
import type { HostApi, Owner, Results } from '../../protocol/host-api.ts';
import type { Params } from '../../protocol/operations.ts';
import type { ProcessInfo, TerminalSize } from '../../protocol/process.ts';
import { decodeRecords } from '../../protocol/record.ts';
import type { RunResult } from '../../protocol/run.ts';
import type { ScreenCondition } from '../../protocol/screen-condition.ts';
import type { ScreenWait, ScreenWaitOptions } from '../../screen/condition.ts';
import type { CheckpointStore } from '../../screen/checkpoints.ts';
import { encodeKeys, encodePaste } from '../../screen/keys.ts';
import { QueryWatch } from '../../screen/queries.ts';
import type { Screen, SnapshotOptions } from '../../screen/screen.ts';
import type { EventSource } from '../../screen/replica.ts';
import type { Screens } from '../../screen/screens.ts';
import type { Modes, Snapshot } from '../../screen/snapshot.ts';
import { terminalSource } from './terminal-source.ts';

export interface SessionOptions {
  readonly host: HostApi;
  readonly screens: () => Promise<Screens>;
  readonly checkpoints?: (process: ProcessInfo) => CheckpointStore;
  /** Whether this view answers what programs ask the terminal, for as long as they run. One view at a time may. */
  readonly answers: boolean;
}

export interface Watched {
  readonly screen: Screen;
  /** Resolves when nothing more will come. */
  readonly over: Promise<void>;
  readonly release: () => void;
}

interface Opened {
  readonly screens: Screens;
  readonly screen: Screen;
}

const PAGE_BYTES = 1024 * 1024;
/** One long poll of whoever follows. */
const FOLLOW_MS = 25_000;
/** A screen that nobody looks at is brought forward when it is this far behind: so no look takes long. */
const BEHIND_BYTES = 2 * 1024 * 1024;
/** How much of a run's own output its answer carries. */
const RUN_OUTPUT_BYTES = 64 * 1024;

export class TerminalSession {
  readonly owner: Owner;
  readonly id: string;
  /** At the start of its journal. */
  readonly firstSize: TerminalSize;
  readonly source: EventSource;
  private readonly options: SessionOptions;
  private opened: Promise<Opened> | undefined;
  private watchers = 0;
  private following: Promise<void> | undefined;
  private readonly reading = new Reading();
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

  /** Wrapped only where the program asked for it; it can never end the paste itself. */
  async paste(text: string, writeId?: string): Promise<Results['write']> {
    const data = encodePaste(text, await this.modes());
    return this.write({ data, as: 'paste', writeId });
  }

  async keys(keys: readonly string[], writeId?: string): Promise<Results['write']> {
    const data = encodeKeys(keys, await this.modes());
    return this.write({ data, as: 'keys', keys: [...keys], writeId });
  }

  run(params: Omit<Params<'run'>, 'id'>, signal?: AbortSignal): Promise<RunResult> {
    return this.host.run(this.owner, { id: this.id, ...params }, signal);
  }

  /** What a run printed itself, the end of it when it is very long. */
  async runOutput({ outputFrom, outputTo }: RunResult): Promise<Buffer | undefined> {
    if (outputFrom === undefined || outputTo === undefined) return undefined;
    const bytes = Math.min(outputTo - outputFrom, RUN_OUTPUT_BYTES);
    if (bytes <= 0) return Buffer.alloc(0);
    const range = { id: this.id, offset: outputTo - bytes, maxBytes: bytes };
    const found = await this.host.range(this.owner, range);
    return found.bytes.subarray(0, Math.max(0, outputTo - found.offset));
  }

  async modes(): Promise<Modes> {
    const screen = await this.current();
    return screen.modes();
  }

  async snapshot(options: SnapshotOptions = {}): Promise<Snapshot> {
    const screen = await this.current();
    return screen.snapshot(options);
  }

  /** The screen is kept current for as long as this takes. When the program ends first, its last screen decides. */
  async wait(
    condition: ScreenCondition,
    options: ScreenWaitOptions,
  ): Promise<ScreenWait & { readonly ended?: true }> {
    const { screen, release, over: programOver } = await this.watch();
    const over = new AbortController();
    const { signal } = options;
    const giveUp = (): void => over.abort();
    signal?.addEventListener('abort', giveUp);
    try {
      const { screens } = await (this.opened ??= this.open());
      let ended = false;
      void programOver.then(() => {
        ended = true;
        over.abort();
      }, giveUp);
      try {
        return await screens.wait(screen, condition, { ...options, signal: over.signal });
      } catch (error) {
        if (!ended || signal?.aborted === true) throw error;
        const last = await screens.wait(screen, condition, { ...options, timeoutMs: 0 });
        return { ...last, timedOut: false, ended: true };
      }
    } finally {
      signal?.removeEventListener('abort', giveUp);
      release();
    }
  }

  /** Keeps the screen current for somebody; the answer ends that. */
  async watch(): Promise<Watched> {
    this.watchers += 1;
    const over = this.attend();
    const screen = await this.current();
    return { screen, over, release: () => (this.watchers -= 1) };
  }

  /** Reads along, so that what the program asks its terminal is answered even while nobody looks. */
  attend(): Promise<void> {
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

  /** The screen with everything in it that there is now. */
  private async current(): Promise<Screen> {
    this.opened ??= this.open();
    const { screen } = await this.opened;
    const { seq } = await this.info();
    // Whoever follows answers what the program asks; what is taken in behind its back would stay unanswered.
    if (this.following) await Promise.race([this.reading.reaches(seq), this.following]);
    await screen.advance();
    return screen;
  }

  private async open(): Promise<Opened> {
    const screens = await this.options.screens();
    const reply = (data: Buffer): void => void this.answer(data);
    const { source, firstSize: size } = this;
    const checkpoints = this.options.checkpoints?.(await this.info());
    const options = { size, source, ...(this.options.answers && { reply }) };
    return { screens, screen: screens.open({ ...options, ...(checkpoints && { checkpoints }) }) };
  }

  private async answer(data: Buffer): Promise<void> {
    try {
      await this.write({ data });
    } catch (error) {
      // It has ended, and nobody waits for the answer.
      if (!(error instanceof HoldfastError)) throw error;
    }
  }

  private async follow(): Promise<void> {
    const queries = new QueryWatch();
    /** Read and not taken in: not much, so that it need not be read again. */
    const waiting: ProcessEvent[] = [];
    let behind = 0;
    const { signal } = this.stop;
    try {
      for (let after = await this.begin(); this.watchers > 0 || this.options.answers;) {
        const page = await this.host.read(
          this.owner,
          { id: this.id, after, maxBytes: PAGE_BYTES, waitMs: FOLLOW_MS },
          signal,
        );
        const events = Array.from(decodeRecords(page.records));
        const asked = events.some((event) => event.kind === 'output' && queries.asks(event.data));
        waiting.push(...events);
        behind += page.records.length;
        if (this.watchers > 0 || asked || behind > BEHIND_BYTES) {
          behind = 0;
          await (await this.opened)?.screen.feed(waiting.splice(0), { live: true });
        }
        after = page.nextAfter;
        this.reading.at(after);
        if (page.end) return;
      }
    } catch (error) {
      // Its process was removed, or the server goes down: there is nothing to follow any more.
      if (!signal.aborted && !(error instanceof HoldfastError)) throw error;
    } finally {
      this.following = undefined;
    }
  }

  /** From what is there now on; what was asked before has been waited for in vain already. */
  private async begin(): Promise<number> {
    this.opened ??= this.open();
    const { screen } = await this.opened;
    const seq = Math.max(screen.seq, (await this.info()).seq);
    this.reading.at(seq);
    return seq;
  }
}

/** How far somebody has read, for those who wait for it. */
class Reading {
  private seq = 0;
  private waiting: { readonly seq: number; readonly reached: () => void }[] = [];

  reaches(seq: number): Promise<void> | undefined {
    if (this.seq >= seq) return undefined;
    return new Promise((reached) => this.waiting.push({ seq, reached }));
  }

  at(seq: number): void {
    this.seq = seq;
    this.waiting = this.waiting.filter((each) => {
      if (each.seq > seq) return true;
      each.reached();
      return false;
    });
  }
}

/** The size it was started with: that of its process now, unless it was resized. */
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
