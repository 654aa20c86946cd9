// The client: starts and finds processes, and hands out handles to them.

import { randomId } from '../base/ids.ts';
import { cutEnd } from '../base/bytes/utf8.ts';
import { listAll } from '../protocol/list-all.ts';
import { abortedError } from '../protocol/cancellation.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { Completion } from '../protocol/host-api.ts';
import type { Params, StartSpec } from '../protocol/operations.ts';
import type { ProcessInfo } from '../protocol/process.ts';
import type { HeadTailText } from '../protocol/views.ts';
import type { Api } from './api.ts';
import { ConnectionLease, type LeaseOptions } from './connection-lease.ts';
import type { TerminalSpec } from './terminal-api.ts';
import { TerminalHandle } from './terminal-handle.ts';
import { ProcessHandle, resultOf, type ExitResult, type WaitOptions } from './process-handle.ts';

/** Of a start in this program's name: whether it ends with this connection; by default as `connect` was told. */
interface Leased {
  readonly lease?: boolean;
}

export type StartOptions = Omit<StartSpec, 'command' | 'argv' | 'lease'> & Leased;
export type TerminalOptions = Omit<TerminalSpec, 'lease'> & Leased;

/** What a start inherits that does not say so itself, and the directory that it means by the one it names. */
export type StartDefaults = (start: {
  readonly pty: boolean;
  readonly cwd: string | undefined;
}) => Required<Pick<StartSpec, 'cwd' | 'environment'>>;

export interface RunOptions extends StartOptions {
  /** Written to stdin, which is then closed. */
  readonly input?: string | Uint8Array;
  /** Most of `stdout` and of `stderr` that is kept in the result; 10 MiB by default. */
  readonly maxBytes?: number;
  /** Gives up the wait; the process goes on. */
  readonly signal?: AbortSignal;
}

export interface RunResult extends ExitResult {
  /** All that it printed to stdout. With `streams: 'merged'` or `'pty'` also what it printed to stderr. */
  readonly stdout: string;
  readonly stderr: string;
  /** True when stdout or stderr is not whole: more than `maxBytes`, or no longer kept. */
  readonly truncated: boolean;
  /** Head and tail of both, within 32 KiB, as a model would be shown them. */
  readonly output: HeadTailText;
  readonly handle: ProcessHandle;
}

/** What ends within this time is known by the answer to its start. */
const SHORT_RUN_MS = 1000;
const RUN_OUTPUT_BYTES = 10 * 1024 * 1024;

/** A connection to a host of processes: one of this machine, of another, or inside this program. */
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
    return new ProcessHandle(this.api, await this.begin(command, options));
  }

  /**
   * Starts, waits for the exit, and answers with the outcome and the output. stdout and stderr are apart unless
   * `streams` says otherwise; only `streams: 'merged'` keeps their order to each other. A non-zero exit is a value.
   */
  async run(command: string | readonly string[], options: RunOptions = {}): Promise<RunResult> {
    const { signal, input, maxBytes = RUN_OUTPUT_BYTES, ...rest } = options;
    const how = input === undefined ? { waitMs: SHORT_RUN_MS } : { stdin: 'pipe' as const };
    const start = { streams: 'separate' as const, ...how, ...rest };
    const process = await this.begin(command, start, signal);
    const handle = new ProcessHandle(this.api, process);
    if (input !== undefined) await giveInput(handle, input);
    const result = process.outcome
      ? resultOf(process)
      : await handle.waitForExit({ ...(signal && { signal }) });
    const [output, printed] = await Promise.all([handle.output(), printedBy(handle, maxBytes)]);
    return { ...result, ...printed, output, handle };
  }

  private async begin(
    command: string | readonly string[],
    { lease, ...options }: StartOptions,
    signal?: AbortSignal,
  ): Promise<ProcessInfo> {
    const what = typeof command === 'string' ? { command } : { argv: [...command] };
    const spec = { ...this.withDefaults(options, options.streams === 'pty'), ...what };
    const { process } = await this.leased(lease, (under) =>
      this.api.start({ ...spec, ...under }, signal),
    );
    return process;
  }

  private leased<T>(
    wanted: boolean | undefined,
    start: (under: { readonly lease?: string }) => Promise<T>,
  ): Promise<T> {
    return (wanted ?? this.isLeased) ? this.lease.start((lease) => start({ lease })) : start({});
  }

  /** A handle on a process by its id. Rejects with `not_found` when there is none. */
  async get(id: string): Promise<ProcessHandle> {
    return new ProcessHandle(this.api, await this.api.get(id));
  }

  /** A terminal with a shell that marks its commands, or with a program of your choice. */
  async terminal({ lease, ...options }: TerminalOptions = {}): Promise<TerminalHandle> {
    const spec = this.withDefaults(options, true);
    const { process } = await this.leased(lease, (under) =>
      this.api.terminals.open({ ...spec, ...under }),
    );
    return new TerminalHandle(this.api, process);
  }

  /** With a key a start whose answer was lost can be asked for again: it attaches instead of running twice. */
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

  /** Processes, running ones first, then the newest. */
  async list(filter: Params<'list'> = {}): Promise<readonly ProcessInfo[]> {
    const { limit, skip, before, ...rest } = filter;
    if (limit === undefined && skip === undefined && before === undefined)
      return listAll((page) => this.api.list(page), rest);
    return (await this.api.list(filter)).processes;
  }

  /** Waits for all of several processes to end; undefined when the time was over first. */
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

  /** Waits for the first of several processes to end; undefined when the time was over first. */
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

  /** Finished processes, each until it is acknowledged: which happens when the next one is asked for. */
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

  /** How the host is. */
  health(): ReturnType<Api['health']> {
    return this.api.health();
  }

  /**
   * Ends what was started under this connection's lease, and lets go of connections. Other processes go on, unless the
   * host lives in this program (`embed`).
   */
  async close(): Promise<void> {
    await this.lease.end();
    await this.api.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** A process that ends, or closes its stdin, without having read everything is no failure of the call. */
async function giveInput(handle: ProcessHandle, input: string | Uint8Array): Promise<void> {
  try {
    await handle.stdin.end(input);
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    if (error.code !== 'stdin_closed' && error.code !== 'not_running') throw error;
  }
}

async function printedBy(
  handle: ProcessHandle,
  maxBytes: number,
): Promise<Pick<RunResult, 'stdout' | 'stderr' | 'truncated'>> {
  const kept = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  const left = { stdout: maxBytes, stderr: maxBytes };
  let truncated = false;
  for await (const { stream, bytes, missedBytes } of handle.logs()) {
    const to = stream === 'stderr' ? 'stderr' : 'stdout';
    const fits = bytes.subarray(0, Math.max(0, left[to]));
    kept[to].push(fits);
    left[to] -= fits.length;
    truncated ||= missedBytes > 0 || fits.length < bytes.length;
    if (left.stdout <= 0 && left.stderr <= 0) break;
  }
  const text = (parts: readonly Buffer[]): string => {
    const bytes = Buffer.concat(parts);
    return bytes.subarray(0, truncated ? cutEnd(bytes) : bytes.length).toString('utf8');
  };
  return { stdout: text(kept.stdout), stderr: text(kept.stderr), truncated };
}
