// A terminal as whoever drives it sees it: what is typed into it, what its screen shows, what can be waited for. The
// process and its journal are the host's; the screen is a view that is opened when somebody looks.

import { HoldfastError } from '../../protocol/errors.ts';
import type { HostApi, Owner, Results } from '../../protocol/host-api.ts';
import type { Params } from '../../protocol/operations.ts';
import type { ProcessInfo, TerminalSize } from '../../protocol/process.ts';
import { decodeRecords } from '../../protocol/record.ts';
import type { RunResult } from '../../protocol/run.ts';
import type { ScreenCondition, ScreenWait, ScreenWaitOptions } from '../../screen/condition.ts';
import { encodeKeys, encodePaste } from '../../screen/keys.ts';
import type { Screen, SnapshotOptions } from '../../screen/screen.ts';
import type { Screens } from '../../screen/screens.ts';
import type { Modes, Snapshot } from '../../screen/snapshot.ts';
import { terminalSource } from './terminal-source.ts';

export interface SessionOptions {
  readonly host: HostApi;
  readonly screens: () => Promise<Screens>;
  /** Whether this view answers what programs ask the terminal. One view at a time may. */
  readonly answers: boolean;
}

interface Opened {
  readonly screens: Screens;
  readonly screen: Screen;
}

/** One long poll of whoever follows. */
const FOLLOW_MS = 25_000;
/** How much of a run's own output its answer carries. */
const RUN_OUTPUT_BYTES = 64 * 1024;

export class TerminalSession {
  readonly owner: Owner;
  readonly id: string;
  private readonly size: TerminalSize;
  private readonly options: SessionOptions;
  private opened: Promise<Opened> | undefined;
  private watchers = 0;
  private following: Promise<void> | undefined;
  private readonly stop = new AbortController();

  constructor(process: ProcessInfo, firstSize: TerminalSize, options: SessionOptions) {
    this.owner = process.owner;
    this.id = process.id;
    this.size = firstSize;
    this.options = options;
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
    const { screen, release } = await this.watch();
    const over = new AbortController();
    const { signal } = options;
    const giveUp = (): void => over.abort();
    signal?.addEventListener('abort', giveUp);
    try {
      const { screens } = await (this.opened ??= this.open());
      let ended = false;
      void this.following?.then(() => {
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
  async watch(): Promise<{ readonly screen: Screen; readonly release: () => void }> {
    const screen = await this.current();
    this.watchers += 1;
    this.following ??= this.follow(screen);
    return { screen, release: () => (this.watchers -= 1) };
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
    // Whoever follows answers what the program asks; what is read behind its back would stay unanswered.
    if (this.following) await this.caughtUp(screen);
    else await screen.advance();
    return screen;
  }

  private async caughtUp(screen: Screen): Promise<void> {
    const { seq } = await this.info();
    if (screen.seq >= seq) return;
    const { promise, stop } = nextSeq(screen, seq);
    await Promise.race([promise, this.following]);
    stop();
    await screen.advance(seq);
  }

  private async open(): Promise<Opened> {
    const screens = await this.options.screens();
    const source = terminalSource(this.host, this.owner, this.id);
    const reply = (data: Buffer): void => void this.answer(data);
    const { size } = this;
    return {
      screens,
      screen: screens.open({ size, source, ...(this.options.answers && { reply }) }),
    };
  }

  private async answer(data: Buffer): Promise<void> {
    try {
      await this.write({ data });
    } catch (error) {
      // It has ended, and nobody waits for the answer.
      if (!(error instanceof HoldfastError)) throw error;
    }
  }

  private async follow(screen: Screen): Promise<void> {
    try {
      while (this.watchers > 0) {
        const after = screen.seq;
        const params = { id: this.id, after, waitMs: FOLLOW_MS };
        const page = await this.host.read(this.owner, params, this.stop.signal);
        await screen.feed(Array.from(decodeRecords(page.records)), { live: true });
        if (page.end) return;
        // What can no longer be read is passed over.
        if (screen.seq === after && page.nextAfter > after) await screen.advance();
      }
    } catch (error) {
      if (!this.stop.signal.aborted) throw error;
    } finally {
      this.following = undefined;
    }
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

function nextSeq(screen: Screen, seq: number): { promise: Promise<void>; stop: () => void } {
  let stop = (): void => undefined;
  const promise = new Promise<void>((resolve) => {
    stop = screen.onChange(() => {
      if (screen.seq >= seq) resolve();
    });
    if (screen.seq >= seq) resolve();
  });
  return { promise, stop: () => stop() };
}
