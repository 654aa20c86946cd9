// The client: starts and finds processes, and hands out handles to them.

import { randomId } from '../base/ids.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { Completion } from '../protocol/host-api.ts';
import type { Params, StartSpec } from '../protocol/operations.ts';
import type { ProcessInfo } from '../protocol/process.ts';
import type { HeadTailText } from '../protocol/views.ts';
import type { Api } from './api.ts';
import type { TerminalSpec } from './terminal-api.ts';
import { TerminalHandle } from './terminal-handle.ts';
import { ProcessHandle, resultOf, type ExitResult, type WaitOptions } from './process-handle.ts';

export type StartOptions = Omit<StartSpec, 'command' | 'argv'>;

export interface RunResult extends ExitResult {
  readonly output: HeadTailText;
  readonly handle: ProcessHandle;
}

/** What ends within this time is known by the answer to its start. */
const SHORT_RUN_MS = 1000;

export class Holdfast {
  /** The operations themselves, as the tools for models use them. */
  readonly api: Api;

  constructor(api: Api) {
    this.api = api;
  }

  /** A string is a shell command, a list is a program with its arguments. */
  async start(
    command: string | readonly string[],
    options: StartOptions = {},
  ): Promise<ProcessHandle> {
    return new ProcessHandle(this.api, await this.begin(command, options));
  }

  /** Starts, waits for the exit, and answers with the outcome and the output. */
  async run(
    command: string | readonly string[],
    options: StartOptions & { signal?: AbortSignal } = {},
  ): Promise<RunResult> {
    const { signal, ...rest } = options;
    const process = await this.begin(command, { waitMs: SHORT_RUN_MS, ...rest }, signal);
    const handle = new ProcessHandle(this.api, process);
    const result = process.outcome
      ? resultOf(process)
      : await handle.waitForExit({ ...(signal && { signal }) });
    return { ...result, output: await handle.output(), handle };
  }

  private async begin(
    command: string | readonly string[],
    options: StartOptions,
    signal?: AbortSignal,
  ): Promise<ProcessInfo> {
    const what = typeof command === 'string' ? { command } : { argv: [...command] };
    // With a key a start whose answer was lost can be asked for again: it attaches instead of running twice.
    const spec = { key: `sdk-${randomId()}`, ...options, ...what };
    return (await this.api.start(spec, signal)).process;
  }

  async get(id: string): Promise<ProcessHandle> {
    return new ProcessHandle(this.api, await this.api.get(id));
  }

  /** A terminal with a shell that marks its commands, or with a program of your choice. */
  async terminal(spec: TerminalSpec = {}): Promise<TerminalHandle> {
    const { process } = await this.api.terminals.open({ key: `sdk-${randomId()}`, ...spec });
    return new TerminalHandle(this.api, process);
  }

  async getTerminal(id: string): Promise<TerminalHandle> {
    return new TerminalHandle(this.api, await this.api.get(id));
  }

  async list(filter: Params<'list'> = {}): Promise<readonly ProcessInfo[]> {
    return (await this.api.list(filter)).processes;
  }

  /** Waits for the first of several processes to end, or for all of them. */
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
      if (signal?.aborted) throw new HoldfastError('aborted', 'The caller stopped waiting.');
    }
  }

  health(): ReturnType<Api['health']> {
    return this.api.health();
  }

  close(): Promise<void> {
    return this.api.close();
  }
}
