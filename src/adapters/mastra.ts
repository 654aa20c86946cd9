// Holdfast as the sandbox of Mastra: `new Workspace({ sandbox: holdfastSandbox(await import('@mastra/core/workspace'), { holdfast }) })`.
// The classes of the caller's copy are extended, so that nothing is imported from the framework.

import { StringDecoder } from 'node:string_decoder';
import { randomId } from '../base/ids.ts';
import type { ExitResult, ProcessHandle } from '../client/process-handle.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { ProcessInfo } from '../protocol/process.ts';
import { exitNumber, HostCommands, unlessUnknown, type AdapterOptions } from './host-commands.ts';

type Class = abstract new (...args: never[]) => object;

/** What is used of "@mastra/core/workspace". */
interface MastraWorkspace {
  readonly MastraSandbox: Class;
  readonly SandboxProcessManager: Class;
  readonly ProcessHandle: Class;
}

interface MastraOptions extends AdapterOptions {
  /** A sandbox that is made again under the same id finds its processes. */
  readonly id?: string;
}

interface SpawnOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Kills the process. */
  readonly timeout?: number;
  readonly stdinMode?: 'pipe' | 'ignore';
  readonly maxRetainedBytes?: number;
  readonly onStdout?: (data: string) => void;
  readonly onStderr?: (data: string) => void;
}

interface CommandResult {
  readonly success: boolean;
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly executionTimeMs: number;
  readonly timedOut: boolean;
  readonly killed: boolean;
}

/** The framework's own handle: it keeps output up to a limit, calls listeners and makes streams. */
interface BaseHandle {
  command?: string;
  readonly stdout: string;
  readonly stderr: string;
  emitStdout(data: string): void;
  emitStderr(data: string): void;
}

interface Handle extends BaseHandle {
  /** The id of the process: it is never used again, unlike a number of the system. */
  readonly pid: string;
  readonly exitCode: number | undefined;
  wait(): Promise<CommandResult>;
  kill(): Promise<boolean>;
  sendStdin(data: string): Promise<void>;
  closeStdin(): Promise<void>;
}

interface Manager {
  spawn(command: string, options?: SpawnOptions): Promise<Handle>;
  list(): Promise<{ pid: string; command: string; running: boolean; exitCode?: number }[]>;
  get(pid: string): Promise<Handle | undefined>;
}

interface HoldfastMastraSandbox {
  readonly id: string;
  readonly processes: Manager;
  writeFiles(files: { path: string; content: string | Buffer; mode?: number }[]): Promise<void>;
  executeCommand(command: string, args?: string[], options?: SpawnOptions): Promise<CommandResult>;
  destroy(): Promise<void>;
}

/** Processes of a sandbox have it, with the id of the sandbox. */
const LABEL = 'mastra';
/** As Mastra's own sandboxes report a timeout. */
const TIMED_OUT = 124;

export function holdfastSandbox<Workspace extends MastraWorkspace>(
  workspace: Workspace,
  options: MastraOptions,
): InstanceType<Workspace['MastraSandbox']> & HoldfastMastraSandbox {
  const { holdfast, directory, id = `holdfast-${randomId()}` } = options;
  const commands = new HostCommands(options);
  const processes = new (managerClass(workspace, options, id))();
  const Base = workspace.MastraSandbox as unknown as new (given: object) => object;
  const createdAt = new Date();
  class Sandbox extends Base {
    readonly id = id;
    readonly name = 'Holdfast';
    readonly provider = 'holdfast';
    status = 'pending';
    readonly networking = {
      getPortUrl: async (port: number): Promise<string> => `http://127.0.0.1:${port}`,
    };

    constructor() {
      super({ name: 'Holdfast', processes, ...(directory && { workingDirectory: directory }) });
    }

    async start(): Promise<void> {
      await holdfast.health();
    }

    /** Processes go on: a sandbox with the same id finds them. */
    async stop(): Promise<void> {}

    async destroy(): Promise<void> {
      await commands.killLabelled(`${LABEL}=${id}`);
    }

    async writeFiles(
      files: { path: string; content: string | Buffer; mode?: number }[],
    ): Promise<void> {
      for (const { path, content, mode } of files) {
        await commands.writeFile(path, content);
        if (mode !== undefined) await commands.output(['chmod', mode.toString(8), '--', path]);
      }
    }

    getInfo(): object {
      const { name, provider, status } = this;
      return { id, name, provider, status, createdAt };
    }

    getInstructions(): string {
      return `Commands run in a POSIX shell on a Holdfast host${directory === undefined ? '' : `, in ${directory}`}. Background processes keep running, with all their output, when this program ends.`;
    }
  }
  return new Sandbox() as unknown as InstanceType<Workspace['MastraSandbox']> &
    HoldfastMastraSandbox;
}

function managerClass(
  workspace: MastraWorkspace,
  options: MastraOptions,
  id: string,
): new () => Manager {
  const { holdfast } = options;
  const commands = new HostCommands(options);
  const HandleOf = handleClass(workspace);
  const Base = workspace.SandboxProcessManager as unknown as new () => {
    readonly sandbox: { readonly workingDirectory?: string };
    readonly _tracked: Map<string, Handle>;
  };
  return class HoldfastProcesses extends Base implements Manager {
    async spawn(command: string, given: SpawnOptions = {}): Promise<Handle> {
      const { timeout, stdinMode } = given;
      const cwd = given.cwd ?? this.sandbox.workingDirectory;
      const variables = Object.entries(given.env ?? {}).filter(([, value]) => value !== undefined);
      const process = await commands.start(command, {
        ...(cwd !== undefined && { cwd }),
        env: Object.fromEntries(variables) as Record<string, string>,
        stdin: stdinMode === 'ignore' ? 'none' : 'pipe',
        ...(timeout !== undefined && timeout > 0 && { hardTimeoutMs: timeout }),
        labels: { [LABEL]: id },
      });
      const handle = new HandleOf(process, given);
      this._tracked.set(handle.pid, handle);
      return handle;
    }

    async list(): ReturnType<Manager['list']> {
      return (await holdfast.list({ label: `${LABEL}=${id}` })).map((process) => {
        const { command, outcome } = process;
        const running = outcome === undefined;
        return { pid: process.id, command, running, ...(outcome && { exitCode: codeOf(process) }) };
      });
    }

    /** Also what an earlier program has started. */
    async get(pid: string): Promise<Handle | undefined> {
      const tracked = this._tracked.get(pid);
      if (tracked) return tracked;
      const process = await holdfast.get(pid).catch(unlessUnknown);
      if (!process) return undefined;
      const info = await process.status();
      const handle = new HandleOf(process, {});
      handle.command = info.command;
      this._tracked.set(pid, handle);
      // The framework forgets an ended process after this call, so its output must be there.
      if (info.outcome) await handle.wait();
      return handle;
    }
  };
}

function handleClass(
  workspace: MastraWorkspace,
): new (process: ProcessHandle, options: SpawnOptions) => Handle {
  const Base = workspace.ProcessHandle as unknown as new (options: SpawnOptions) => BaseHandle;
  return class HoldfastProcess extends Base implements Handle {
    readonly pid: string;
    exitCode: number | undefined;
    private readonly process: ProcessHandle;
    private readonly ended: Promise<CommandResult>;

    constructor(process: ProcessHandle, options: SpawnOptions) {
      super(options);
      this.pid = process.id;
      this.process = process;
      this.ended = untilExit(process, this).then(() => this.result());
      // Every wait gives the error; without a wait there is nobody to tell.
      this.ended.catch(() => undefined);
    }

    wait(): Promise<CommandResult> {
      return this.ended;
    }

    async kill(): Promise<boolean> {
      if (this.exitCode !== undefined) return false;
      return (await this.process.kill().catch(unlessOver)) !== undefined;
    }

    sendStdin(data: string): Promise<void> {
      return this.process.stdin.write(data);
    }

    closeStdin(): Promise<void> {
      return this.process.stdin.end();
    }

    private async result(): Promise<CommandResult> {
      const ended = await this.process.waitForExit();
      this.exitCode = numberOf(ended);
      const { timedOut, durationMs, outcome } = ended;
      return {
        success: this.exitCode === 0,
        exitCode: this.exitCode,
        stdout: this.stdout,
        stderr: this.stderr,
        executionTimeMs: durationMs,
        timedOut,
        killed: outcome.kind !== 'exit',
      };
    }
  };
}

/** Output goes on behind the exit while a descendant holds it open; nobody waits for that. */
function untilExit(process: ProcessHandle, handle: BaseHandle): Promise<void> {
  return new Promise((resolve, reject) => {
    // A process that was lost has no exit.
    emitOutput(process, handle, resolve).then(resolve, reject);
  });
}

async function emitOutput(
  process: ProcessHandle,
  handle: BaseHandle,
  exited: () => void,
): Promise<void> {
  const decoders = { stdout: new StringDecoder(), stderr: new StringDecoder() };
  const emit = (isError: boolean, data: string): void => {
    if (data === '') return;
    if (isError) handle.emitStderr(data);
    else handle.emitStdout(data);
  };
  for await (const event of process.events({ follow: true })) {
    if (event.missedBytes > 0)
      emit(true, `[holdfast: ${event.missedBytes} bytes of output are missing here]\n`);
    if (event.kind === 'exited') exited();
    if (event.kind !== 'output') continue;
    const isError = event.stream === 'stderr';
    emit(isError, decoders[isError ? 'stderr' : 'stdout'].write(event.data));
  }
  emit(false, decoders.stdout.end());
  emit(true, decoders.stderr.end());
}

function numberOf(ended: Pick<ExitResult, 'outcome' | 'timedOut'>): number {
  return ended.timedOut ? TIMED_OUT : exitNumber(ended);
}

function codeOf({ outcome }: ProcessInfo): number {
  return outcome ? numberOf({ outcome, timedOut: outcome.kind === 'timeout' }) : -1;
}

function unlessOver(error: unknown): undefined {
  if (!(error instanceof HoldfastError) || error.code !== 'not_running') throw error;
}
