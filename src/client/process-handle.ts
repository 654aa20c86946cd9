// A handle: one process as a caller of the SDK holds it. Reading never consumes, waiting never ends anything, and a
// non-zero exit is a value, not an exception.

import { HoldfastError } from '../protocol/errors.ts';
import type { ProcessEvent, Stream } from '../protocol/event.ts';
import type { ListeningPort, Met, SignalResult } from '../protocol/host-api.ts';
import type { Condition } from '../protocol/operations.ts';
import type { Outcome, ProcessInfo, TerminalSize } from '../protocol/process.ts';
import type { HeadTailText, SearchResult } from '../protocol/views.ts';
import { Utf8Stream } from '../base/utf8.ts';
import type { Api } from './api.ts';

export interface WaitOptions {
  /** How long to wait at most; without it, as long as it takes. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface LogOptions {
  /** Begin after this event; 0 is the beginning, which is the default. */
  readonly since?: number;
  /** Go on until the process closes. */
  readonly follow?: boolean;
  readonly signal?: AbortSignal;
}

export interface LogChunk {
  readonly seq: number;
  readonly stream: Stream;
  readonly bytes: Buffer;
  readonly text: string;
  /** Output bytes that stood before this chunk and are gone. */
  readonly missedBytes: number;
}

export interface ExitResult {
  readonly outcome: Outcome;
  /** Present only for an ordinary exit. */
  readonly exitCode?: number;
  readonly signal?: string;
  readonly timedOut: boolean;
  readonly durationMs: number;
  readonly process: ProcessInfo;
}

export class ProcessHandle {
  readonly id: string;
  readonly pid: number;
  readonly stdin: {
    write(data: string | Uint8Array): Promise<void>;
    end(data?: string | Uint8Array): Promise<void>;
  };
  private readonly api: Api;

  constructor(api: Api, process: ProcessInfo) {
    this.api = api;
    this.id = process.id;
    this.pid = process.pid;
    this.stdin = {
      write: (data) => this.write(data, false),
      end: (data = '') => this.write(data, true),
    };
  }

  status(): Promise<ProcessInfo> {
    return this.api.get(this.id);
  }

  /** Head and tail of the output as text, as a model would be shown it. */
  output(options: { maxBytes?: number } = {}): Promise<HeadTailText> {
    return this.api.text({ id: this.id, ...options });
  }

  /** Every event of the journal, from the beginning or after a number. */
  async *events({ since = 0, follow = false, signal }: LogOptions = {}): AsyncGenerator<
    ProcessEvent & { missedBytes: number }
  > {
    let after = since;
    let offset: number | undefined;
    for (;;) {
      const wait = follow ? { waitMs: PAGE_WAIT_MS } : {};
      const page = await this.api.events(
        { id: this.id, after, ...(offset !== undefined && { offset }), ...wait },
        signal,
      );
      let missedBytes = page.missed?.bytes ?? 0;
      for (const event of page.events) {
        yield { ...event, missedBytes };
        missedBytes = 0;
      }
      if (page.end || (!follow && page.nextAfter === after)) return;
      ({ nextAfter: after, nextOffset: offset } = page);
    }
  }

  /** The output, chunk by chunk; text never splits a character of its stream. */
  async *logs(options: LogOptions = {}): AsyncGenerator<LogChunk> {
    const decoders = new Map<Stream, Utf8Stream>();
    for await (const event of this.events(options)) {
      if (event.kind !== 'output') continue;
      const { seq, stream, data, missedBytes } = event;
      let decoder = decoders.get(stream);
      if (!decoder) decoders.set(stream, (decoder = new Utf8Stream()));
      yield { seq, stream, bytes: data, text: decoder.push(data), missedBytes };
    }
  }

  /** How it ended. With `timeoutMs`, undefined when it is still running then. */
  async wait(options: WaitOptions = {}): Promise<ExitResult | undefined> {
    const met = await this.first([{ kind: 'exit' }], options);
    return met && resultOf(met.process);
  }

  async waitForExit(options: Omit<WaitOptions, 'timeoutMs'> = {}): Promise<ExitResult> {
    const result = await this.wait(options);
    if (!result)
      throw new HoldfastError('internal', 'a wait without a limit ended without an answer');
    return result;
  }

  /** The first line with this text or pattern; undefined when it can no longer come or the time is over. */
  async waitForLog(
    what: string | RegExp,
    options: WaitOptions = {},
  ): Promise<{ line: string; match: string } | undefined> {
    const condition: Condition =
      typeof what === 'string'
        ? { kind: 'text', text: what }
        : { kind: 'pattern', pattern: what.source, ignoreCase: what.ignoreCase };
    const met = await this.first([condition], options);
    return met?.met === true ? { line: met.line ?? '', match: met.match ?? '' } : undefined;
  }

  /** The port it listens on: this one, or any; undefined when that can no longer come or the time is over. */
  async waitForPort(port?: number, options: WaitOptions = {}): Promise<number | undefined> {
    const met = await this.first([{ kind: 'port', ...(port !== undefined && { port }) }], options);
    return met?.met === true ? met.port : undefined;
  }

  /** True when it printed nothing for so long; false when it ended or the time was over first. */
  async waitForIdle(forMs: number, options: WaitOptions = {}): Promise<boolean> {
    return (await this.first([{ kind: 'silence', forMs }], options))?.met === true;
  }

  /** The first of several conditions. */
  async first(
    conditions: Condition[],
    { timeoutMs, signal }: WaitOptions = {},
  ): Promise<Met | undefined> {
    const waits = [{ id: this.id, for: conditions }];
    const { met } = await this.api.wait(
      { waits, ...(timeoutMs !== undefined && { timeoutMs }) },
      signal,
    );
    return met[0];
  }

  search(
    pattern: string | RegExp,
    options: { context?: number; limit?: number } = {},
  ): Promise<SearchResult> {
    const query =
      typeof pattern === 'string'
        ? ({ pattern, kind: 'text' } as const)
        : ({ pattern: pattern.source, kind: 'regex', ignoreCase: pattern.ignoreCase } as const);
    return this.api.search({ id: this.id, ...query, ...options });
  }

  async ports(): Promise<readonly ListeningPort[]> {
    return (await this.api.ports(this.id)).ports;
  }

  signal(name: string, options: { by?: string } = {}): Promise<SignalResult> {
    return this.api.signal({ id: this.id, signal: name, ...options });
  }

  /** TERM, a grace, then KILL; the answer says what survived. */
  terminate(options: { graceMs?: number; by?: string } = {}): Promise<SignalResult> {
    return this.api.signal({ id: this.id, signal: 'terminate', ...options });
  }

  kill(): Promise<SignalResult> {
    return this.api.signal({ id: this.id, signal: 'kill' });
  }

  async resize(size: TerminalSize): Promise<void> {
    await this.api.resize({ id: this.id, size });
  }

  /** Forgets it and its output; with `force` it is ended first. */
  async remove(options: { force?: boolean } = {}): Promise<void> {
    await this.api.remove({ id: this.id, ...options });
  }

  private async write(data: string | Uint8Array, eof: boolean): Promise<void> {
    await this.api.write({
      id: this.id,
      data: typeof data === 'string' ? Buffer.from(data) : data,
      eof,
    });
  }
}

/** One long poll; its end is not noticed by whoever follows. */
const PAGE_WAIT_MS = 25_000;

export function resultOf(process: ProcessInfo): ExitResult {
  const { outcome } = process;
  if (!outcome) throw new HoldfastError('internal', `process ${process.id} has not ended`);
  const code = 'code' in outcome ? outcome.code : undefined;
  const signal = 'signal' in outcome ? outcome.signal : undefined;
  return {
    outcome,
    ...(code !== undefined && { exitCode: code }),
    ...(signal !== undefined && { signal }),
    timedOut: outcome.kind === 'timeout',
    durationMs: process.durationMs,
    process,
  };
}
