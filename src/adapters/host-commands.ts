// What every adapter needs of a host: commands with exact bytes, and files by way of commands, so that they are those of the
// host, wherever it is.

import { constants } from 'node:os';
import type { Holdfast, StartOptions } from '../client/holdfast.ts';
import type { ExitResult, ProcessHandle } from '../client/process-handle.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { Stream } from '../protocol/event.ts';

export interface AdapterOptions {
  readonly holdfast: Holdfast;
  /** Where commands run and relative paths begin; by default the directory of the connection. */
  readonly directory?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export class HostCommands {
  private readonly options: AdapterOptions;

  constructor(options: AdapterOptions) {
    this.options = options;
  }

  start(command: string | readonly string[], more: StartOptions = {}): Promise<ProcessHandle> {
    const { holdfast, directory, env } = this.options;
    return holdfast.start(command, {
      streams: 'separate',
      ...(directory !== undefined && { cwd: directory }),
      ...more,
      env: { ...env, ...more.env },
    });
  }

  /** All bytes of a stream. Throws if the host no longer has some of them. */
  async bytes(handle: ProcessHandle, stream?: Stream): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for await (const chunk of handle.logs({ follow: true })) {
      if (chunk.missedBytes > 0)
        throw new HoldfastError('too_large', `${chunk.missedBytes} bytes of output are missing.`);
      if (stream === undefined || chunk.stream === stream) pieces.push(chunk.bytes);
    }
    return Buffer.concat(pieces);
  }

  /** Undefined if the file is not there. Throws what the host says of other problems. */
  async readFile(path: string): Promise<Buffer | undefined> {
    if ((await this.fileType(path)) === undefined) return undefined;
    return this.output(['cat', '--', path]);
  }

  async writeFile(path: string, content: string | Uint8Array): Promise<void> {
    const script = 'mkdir -p -- "$(dirname -- "$1")" && cat > "$1"';
    await this.output(['sh', '-c', script, 'sh', path], content);
  }

  /** As `stat` names it, links followed; undefined if nothing is there. */
  async fileType(path: string): Promise<{ type: string; size: number } | undefined> {
    const script = 'test -e "$1" || exit 44; stat -L -c "%s %F" -- "$1"';
    const handle = await this.start(['sh', '-c', script, 'sh', path]);
    const [printed, ended] = [await this.bytes(handle), await handle.waitForExit()];
    if (ended.exitCode === 44) return undefined;
    if (ended.exitCode !== 0) throw failed(path, printed);
    const [size = '', ...type] = printed.toString().trim().split(' ');
    return { type: type.join(' '), size: Number(size) };
  }

  /** Names with a letter for the kind of each: f, d, l or another. */
  async list(path: string): Promise<{ name: string; kind: string }[]> {
    const words = ['find', path, '-mindepth', '1', '-maxdepth', '1', '-printf', '%y%f\\0'];
    const names = (await this.output(words)).toString().split('\0').slice(0, -1);
    const entries = names.map((each) => ({ kind: each.slice(0, 1), name: each.slice(1) }));
    return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Ends all running processes that have a label, with what they started. */
  async killLabelled(label: string): Promise<void> {
    const { holdfast } = this.options;
    const all = await holdfast.list({ label, state: 'running' });
    await Promise.all(
      all.map(async ({ id }) => (await holdfast.get(id).catch(unlessUnknown))?.kill()),
    );
  }

  /** The bytes that a program prints. Throws with its errors if it fails. */
  async output(argv: readonly string[], input?: string | Uint8Array): Promise<Buffer> {
    const handle = await this.start(argv, { stdin: input === undefined ? 'none' : 'pipe' });
    // A program that fails early does not read its input; its errors say why.
    if (input !== undefined) await handle.stdin.end(input).catch(unlessEnded);
    const [printed, ended] = [await this.bytes(handle, 'stdout'), await handle.waitForExit()];
    if (ended.exitCode === 0) return printed;
    throw failed(argv.at(-1) ?? '', await this.bytes(handle, 'stderr'));
  }
}

function unlessEnded(error: unknown): void {
  if (!(error instanceof HoldfastError)) throw error;
  if (error.code !== 'stdin_closed' && error.code !== 'not_running') throw error;
}

/** Undefined for a process that is not there. */
export function unlessUnknown(error: unknown): undefined {
  if (!(error instanceof HoldfastError) || error.code !== 'not_found') throw error;
}

function failed(path: string, printed: Buffer): HoldfastError {
  return new HoldfastError('invalid_input', printed.toString().trim() || `${path}: it failed`);
}

/** A number for every ending: 128 and the signal's number as shells have it, -1 if the outcome is unknown. */
export function exitNumber({ outcome }: Pick<ExitResult, 'outcome'>): number {
  if (outcome.kind === 'exit') return outcome.code;
  const signal = 'signal' in outcome ? outcome.signal : undefined;
  const number = signal === undefined ? undefined : constants.signals[signal as NodeJS.Signals];
  return number === undefined ? -1 : 128 + number;
}

/** Relative directories begin in the base directory, wherever the command runs. */
export function within(base: string | undefined, directory: string): string {
  return base === undefined || directory.startsWith('/') ? directory : `${base}/${directory}`;
}
