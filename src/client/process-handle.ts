// A handle on one process. Reading consumes nothing, waiting ends nothing, and a non-zero exit is a value, not an
// exception.

import { Readable } from 'node:stream';
import { ReadableStream } from 'node:stream/web';
import { HoldfastError } from '../protocol/errors.ts';
import type { ProcessEvent, Stream } from '../protocol/event.ts';
import { followEvents } from '../base/follow-events.ts';
import type { ListeningPort, Met, SignalResult, TreeMember } from '../protocol/host-api.ts';
import type { Condition } from '../protocol/operations.ts';
import type { Outcome, ProcessInfo, TerminalSize } from '../protocol/process.ts';
import type { HeadTailText, SearchResult } from '../protocol/views.ts';
import { Utf8Stream } from '../base/bytes/utf8.ts';
import type { Api } from './api.ts';

export interface WaitOptions {
  /** By default without a limit. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface LogOptions {
  /** Begin after this event; 0, the default, is the beginning. */
  readonly since?: number;
  /** Continue until the process closes. */
  readonly follow?: boolean;
  readonly signal?: AbortSignal;
}

export interface LogChunk {
  readonly seq: number;
  readonly stream: Stream;
  readonly bytes: Buffer;
  readonly text: string;
  /** Output bytes before this chunk that are no longer stored. */
  readonly missedBytes: number;
}

export interface ExitResult {
  readonly outcome: Outcome;
  /** Only for an ordinary exit. */
  readonly exitCode?: number;
  readonly signal?: string;
  readonly timedOut: boolean;
  readonly durationMs: number;
  readonly process: ProcessInfo;
}

export interface StreamOptions {
  /** Only this stream; by default all output in order. */
  readonly stream?: Stream;
  /** Begin after this event. */
  readonly since?: number;
  readonly signal?: AbortSignal;
}

/** One process. The handle holds nothing: it can be made again from the id, in another program too. */
export class ProcessHandle {
  readonly id: string;
  readonly pid: number;
  /** Requires `stdin: 'pipe'`. A write resolves when the process, or its pipe, has taken it. */
  readonly stdin: {
    write(data: string | Uint8Array): Promise<void>;
    end(data?: string | Uint8Array): Promise<void>;
  };
  protected readonly api: Api;

  constructor(api: Api, process: ProcessInfo) {
    this.api = api;
    this.id = process.id;
    this.pid = process.pid;
    this.stdin = {
      write: (data) => this.write(data, false),
      end: (data = '') => this.write(data, true),
    };
  }

  /** The present state. */
  status(): Promise<ProcessInfo> {
    return this.api.get(this.id);
  }

  /** Head and tail of the output as text, as a model sees it, with the state of the process at that time. */
  output(options: { maxBytes?: number } = {}): Promise<HeadTailText & { process: ProcessInfo }> {
    return this.api.text({ id: this.id, ...options });
  }

  /** The output until the process closes, as a web stream. */
  stream(options: StreamOptions = {}): ReadableStream<Uint8Array> {
    return ReadableStream.from(this.chunks(options));
  }

  /** The same as a Node stream. */
  readable(options: StreamOptions = {}): Readable {
    return Readable.from(this.chunks(options), { objectMode: false });
  }

  private async *chunks({ stream, ...rest }: StreamOptions): AsyncGenerator<Uint8Array> {
    for await (const event of this.events({ ...rest, follow: true }))
      if (event.kind === 'output' && (stream === undefined || event.stream === stream))
        yield event.data;
  }

  /** Every event of the journal, from the beginning or after a sequence number. */
  async *events({ since = 0, follow = false, signal }: LogOptions = {}): AsyncGenerator<
    ProcessEvent & { missedBytes: number }
  > {
    const wait = follow ? { waitMs: PAGE_WAIT_MS } : {};
    const pages = followEvents(
      (position) => this.api.events({ id: this.id, ...position, ...wait }, signal),
      { after: since },
      follow ? 'end' : 'now',
    );
    for await (const page of pages) {
      let missedBytes = page.missed?.bytes ?? 0;
      for (const event of page.events) {
        yield { ...event, missedBytes };
        missedBytes = 0;
      }
    }
  }

  /** The output, chunk by chunk; text never splits a character. */
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

  /** The outcome; undefined if the process still runs after `timeoutMs`. */
  async wait(options: WaitOptions = {}): Promise<ExitResult | undefined> {
    const met = await this.first([{ kind: 'exit' }], options);
    return met && resultOf(met.process);
  }

  /** The outcome, however long that takes. */
  async waitForExit(options: Omit<WaitOptions, 'timeoutMs'> = {}): Promise<ExitResult> {
    const result = await this.wait(options);
    if (!result)
      throw new HoldfastError('internal', 'a wait without a limit ended without an answer');
    return result;
  }

  /** The first line with this text or pattern; undefined if it can no longer come, or on timeout. */
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

  /** The port it listens on: this one, or any; undefined if that can no longer come, or on timeout. */
  async waitForPort(port?: number, options: WaitOptions = {}): Promise<number | undefined> {
    const met = await this.first([{ kind: 'port', ...(port !== undefined && { port }) }], options);
    return met?.met === true ? met.port : undefined;
  }

  /** True if it printed nothing for this long; false if it exited or on timeout. */
  async waitForIdle(forMs: number, options: WaitOptions = {}): Promise<boolean> {
    return (await this.first([{ kind: 'silence', forMs }], options))?.met === true;
  }

  /** The first condition that is met. */
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

  /** Matching lines in all stored output. */
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

  /** The ports on which it or a descendant listens. */
  async ports(): Promise<readonly ListeningPort[]> {
    return (await this.api.ports(this.id)).ports;
  }

  /** Its living processes, each with its command, processor time and memory. */
  async tree(): Promise<readonly TreeMember[]> {
    return (await this.api.tree(this.id)).members;
  }

  /** Sends a signal to the process and its descendants. Rejects with `not_running` if none is alive. */
  signal(name: NodeJS.Signals, options: { by?: string } = {}): Promise<SignalResult> {
    return this.api.signal({ id: this.id, signal: name, ...options });
  }

  /** SIGTERM, a grace period, then SIGKILL; the result lists survivors. Does nothing if all have exited. */
  terminate(options: { graceMs?: number; by?: string } = {}): Promise<SignalResult> {
    return this.end({ signal: 'terminate', ...options });
  }

  /** SIGKILL at once, for the process and its descendants. */
  kill(options: { by?: string } = {}): Promise<SignalResult> {
    return this.end({ signal: 'kill', ...options });
  }

  /** Terminates it at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.terminate();
  }

  private async end(how: { signal: 'terminate' | 'kill'; graceMs?: number; by?: string }) {
    try {
      return await this.api.signal({ id: this.id, ...how });
    } catch (error) {
      if (!(error instanceof HoldfastError) || error.code !== 'not_running') throw error;
      return NOTHING_ALIVE;
    }
  }

  /** Changes the size of a terminal. */
  async resize(size: TerminalSize): Promise<void> {
    await this.api.resize({ id: this.id, size });
  }

  /** Deletes it and its output; with `force` it is ended first. */
  async remove(options: { force?: boolean } = {}): Promise<void> {
    await this.api.remove({ id: this.id, ...options });
  }

  /** In pieces that fit a request. */
  private async write(given: string | Uint8Array, eof: boolean): Promise<void> {
    const data = typeof given === 'string' ? Buffer.from(given) : given;
    for (let at = 0; at === 0 || at < data.length; at += WRITE_BYTES) {
      const last = at + WRITE_BYTES >= data.length;
      const piece = data.subarray(at, at + WRITE_BYTES);
      await this.api.write({ id: this.id, data: piece, eof: eof && last });
    }
  }
}

const NOTHING_ALIVE: SignalResult = {
  signalled: [],
  escapees: [],
  survivors: [],
  escalated: false,
};
const WRITE_BYTES = 512 * 1024;
/** The timeout of one long poll. */
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
