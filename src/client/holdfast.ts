// The client: starts and finds processes, and returns handles on them.

import { randomId } from '../base/ids.ts';
import { cutEnd } from '../base/bytes/utf8.ts';
import { listAll } from '../protocol/list-all.ts';
import { abortedError } from '../protocol/cancellation.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { Need } from '../protocol/dashboard/attention.ts';
import {
  searchAll,
  type SearchAllLine,
  type SearchAllParams,
} from '../protocol/dashboard/search-all.ts';
import type { Completion } from '../protocol/host-api.ts';
import type { Params, StartSpec } from '../protocol/operations.ts';
import type { ProcessInfo } from '../protocol/process.ts';
import type { HeadTailText } from '../protocol/views.ts';
import type { Api } from './api.ts';
import { ConnectionLease, type LeaseOptions } from './connection-lease.ts';
import type { TerminalSpec } from './terminal-api.ts';
import { TerminalHandle } from './terminal-handle.ts';
import { ProcessHandle, resultOf, type ExitResult, type WaitOptions } from './process-handle.ts';

/** Whether the process ends with this connection; the default is the option of `connect`. */
interface LeaseChoice {
  readonly lease?: boolean;
}

export type StartOptions = Omit<StartSpec, 'command' | 'argv' | 'lease'> & LeaseChoice;
export type TerminalOptions = Omit<TerminalSpec, 'lease'> & LeaseChoice;

/** Environment and working directory of a start that names none, and how a relative directory is resolved. */
export type StartDefaults = (start: {
  readonly pty: boolean;
  readonly cwd: string | undefined;
}) => Required<Pick<StartSpec, 'cwd' | 'environment'>>;

export interface RunOptions extends StartOptions {
  /** Written to stdin, which is then closed. */
  readonly input?: string | Uint8Array;
  /** The maximum size of `stdout` and of `stderr` in the result; 10 MiB by default. */
  readonly maxBytes?: number;
  /** Cancels the wait; the process continues. */
  readonly signal?: AbortSignal;
}

export interface RunResult extends ExitResult {
  /** All of stdout. With `streams: 'merged'` or `'pty'` it includes stderr. */
  readonly stdout: string;
  readonly stderr: string;
  /** True if stdout or stderr is incomplete: larger than `maxBytes`, or no longer stored. */
  readonly truncated: boolean;
  /** Head and tail of both, within 32 KiB, as a model sees them. */
  readonly output: HeadTailText;
  readonly handle: ProcessHandle;
}

/** The answer to a start waits this long, so that a short command needs no second request. */
const SHORT_RUN_MS = 1000;
const RUN_OUTPUT_BYTES = 10 * 1024 * 1024;
const NOTHING_PRINTED = { stdout: '', stderr: '', truncated: false, output: { text: '' } };

/** A connection to a host: on this machine, on another, or in this process. */
export class Holdfast {
  /** The operations themselves, as the tools for models use them. */
  readonly api: Api;
  private readonly defaults: StartDefaults | undefined;
  private readonly isLeased: boolean;
  private readonly lease: ConnectionLease;

  constructor(api: Api, defaults?: StartDefaults, leasing: LeaseOptions = {}) {
    this.api = api;
    this.defaults = defaults;
    this.isLeased = leasing.lease ?? false;
    this.lease = new ConnectionLease(api, leasing);
  }

  /** A string is a shell command, a list is a program with its arguments. */
  async start(
    command: string | readonly string[],
    options: StartOptions = {},
  ): Promise<ProcessHandle> {
    return new ProcessHandle(this.api, await this.startProcess(command, options));
  }

  /**
   * Starts a command, waits for its exit, and returns outcome and output. stdout and stderr are separate by default;
   * only `streams: 'merged'` keeps their relative order. A non-zero exit is a value, not an exception.
   */
  async run(command: string | readonly string[], options: RunOptions = {}): Promise<RunResult> {
    const { signal, input, maxBytes = RUN_OUTPUT_BYTES, ...rest } = options;
    const how = input === undefined ? { waitMs: SHORT_RUN_MS } : { stdin: 'pipe' as const };
    const start = { streams: 'separate' as const, ...how, ...rest };
    const process = await this.startProcess(command, start, signal);
    const handle = new ProcessHandle(this.api, process);
    if (input !== undefined) await writeInput(handle, input);
    const result = process.outcome
      ? resultOf(process)
      : await handle.waitForExit({ ...(signal && { signal }) });
    const { state, bytes } = result.process;
    // Nothing to ask for.
    if (state === 'closed' && bytes.total === 0) return { ...result, ...NOTHING_PRINTED, handle };
    const [output, printed] = await Promise.all([handle.output(), readOutput(handle, maxBytes)]);
    return { ...result, ...printed, output, handle };
  }

  private async startProcess(
    command: string | readonly string[],
    { lease, ...options }: StartOptions,
    signal?: AbortSignal,
  ): Promise<ProcessInfo> {
    const what = typeof command === 'string' ? { command } : { argv: [...command] };
    const spec = { ...this.withDefaults(options, options.streams === 'pty'), ...what };
    const { process } = await this.underLease(lease, (under) =>
      this.api.start({ ...spec, ...under }, signal),
    );
    return process;
  }

  private underLease<T>(
    wanted: boolean | undefined,
    start: (under: { readonly lease?: string }) => Promise<T>,
  ): Promise<T> {
    return (wanted ?? this.isLeased) ? this.lease.start((lease) => start({ lease })) : start({});
  }

  /** A handle on a process by its id. Rejects with `not_found` if there is none. */
  async get(id: string): Promise<ProcessHandle> {
    return new ProcessHandle(this.api, await this.api.get(id));
  }

  /** A terminal with a shell that reports the end of each command, or with a program of your choice. */
  async terminal({ lease, ...options }: TerminalOptions = {}): Promise<TerminalHandle> {
    const spec = this.withDefaults(options, true);
    const { process } = await this.underLease(lease, (under) =>
      this.api.terminals.open({ ...spec, ...under }),
    );
    return new TerminalHandle(this.api, process);
  }

  /** With a key, a start whose answer was lost can be repeated: it attaches instead of running twice. */
  private withDefaults<T extends Omit<StartOptions | TerminalSpec, 'lease'>>(
    options: T,
    pty: boolean,
  ): T {
    const key = `sdk-${randomId()}`;
    const inherited = this.defaults?.({ pty, cwd: options.cwd });
    if (!inherited) return { key, ...options };
    const { cwd, environment } = inherited;
    return { key, environment, ...options, cwd };
  }

  /** A handle on a terminal by its id. */
  async getTerminal(id: string): Promise<TerminalHandle> {
    return new TerminalHandle(this.api, await this.api.get(id));
  }

  /** Running processes first, then the newest. */
  async list(filter: Params<'list'> = {}): Promise<readonly ProcessInfo[]> {
    const { limit, skip, before, ...rest } = filter;
    if (limit === undefined && skip === undefined && before === undefined)
      return listAll((page) => this.api.list(page), rest);
    return (await this.api.list(filter)).processes;
  }

  /** Waits until all of several processes have exited; undefined on timeout. */
  async waitForAll(
    handles: readonly ProcessHandle[],
    { timeoutMs, signal }: WaitOptions = {},
  ): Promise<ExitResult[] | undefined> {
    const waits = handles.map(({ id }) => ({ id, for: [{ kind: 'exit' } as const] }));
    const limit = timeoutMs !== undefined && { timeoutMs };
    const { met, timedOut } = await this.api.wait({ waits, mode: 'all', ...limit }, signal);
    if (timedOut) return undefined;
    return handles.flatMap(({ id }) =>
      met.filter((each) => each.id === id).map(({ process }) => resultOf(process)),
    );
  }

  /** Waits until the first of several processes has exited; undefined on timeout. */
  async waitForAny(
    handles: readonly ProcessHandle[],
    options: WaitOptions = {},
  ): Promise<ExitResult | undefined> {
    const { timeoutMs, signal } = options;
    const waits = handles.map(({ id }) => ({ id, for: [{ kind: 'exit' } as const] }));
    const { met } = await this.api.wait(
      { waits, ...(timeoutMs !== undefined && { timeoutMs }) },
      signal,
    );
    return met[0] && resultOf(met[0].process);
  }

  /** Completions. Each is acknowledged when the next one is requested. */
  async *events(
    options: { subscriber?: string; signal?: AbortSignal } = {},
  ): AsyncGenerator<Completion> {
    const { subscriber = 'sdk', signal } = options;
    for (;;) {
      const { completions } = await this.api.completions({ subscriber, waitMs: 25_000 }, signal);
      for (const completion of completions) {
        yield completion;
        await this.api.acknowledge({ subscriber, numbers: [completion.number] });
      }
      if (signal?.aborted) throw abortedError();
    }
  }

  /** Searches the output of all processes, the newest first; hits come as they are found. */
  searchAll(params: SearchAllParams, signal?: AbortSignal): AsyncGenerator<SearchAllLine> {
    const { api } = this;
    const search = (_owner: string, wanted: Params<'search'>) => api.search(wanted, signal);
    return searchAll({ list: (filter) => api.list(filter), search }, params, signal);
  }

  /** Running processes that need a person: they asked, wait for input, or are silent for `quietMs`. The oldest first. */
  async attention(options: Params<'attention'> = {}): Promise<readonly Need[]> {
    return (await this.api.attention(options)).needs;
  }

  health(): ReturnType<Api['health']> {
    return this.api.health();
  }

  /**
   * Ends the processes under this connection's lease and closes connections. Other processes continue, unless the host
   * is in this process (`embed`).
   */
  async close(): Promise<void> {
    await this.lease.end();
    await this.api.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** It is no error if a process exits or closes its stdin before it has read everything. */
async function writeInput(handle: ProcessHandle, input: string | Uint8Array): Promise<void> {
  try {
    await handle.stdin.end(input);
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    if (error.code !== 'stdin_closed' && error.code !== 'not_running') throw error;
  }
}

async function readOutput(
  handle: ProcessHandle,
  maxBytes: number,
): Promise<Pick<RunResult, 'stdout' | 'stderr' | 'truncated'>> {
  const kept = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  const remaining = { stdout: maxBytes, stderr: maxBytes };
  let truncated = false;
  for await (const { stream, bytes, missedBytes } of handle.logs()) {
    const to = stream === 'stderr' ? 'stderr' : 'stdout';
    const fits = bytes.subarray(0, Math.max(0, remaining[to]));
    kept[to].push(fits);
    remaining[to] -= fits.length;
    truncated ||= missedBytes > 0 || fits.length < bytes.length;
    if (remaining.stdout <= 0 && remaining.stderr <= 0) break;
  }
  const text = (parts: readonly Buffer[]): string => {
    const bytes = Buffer.concat(parts);
    return bytes.subarray(0, truncated ? cutEnd(bytes) : bytes.length).toString('utf8');
  };
  return { stdout: text(kept.stdout), stderr: text(kept.stderr), truncated };
}
