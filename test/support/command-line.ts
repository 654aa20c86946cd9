// The command line for tests, against a real keeper in a temporary home: a command runs in this process (`Place.run`), which
// takes a tenth of the time, or as a child of the built program (`Place.start`) where the process itself is the subject.

import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { runProgram, type InheritedEnvironment } from '../../src/cli/program.ts';

export const root = fileURLToPath(new URL('../..', import.meta.url));
export const main = join(root, 'dist/cli/main.js');

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly bytes: Buffer;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command under way: what it has printed so far, and its end. */
export class Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  private readonly parts = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  private readonly waiting = new Set<() => void>();
  private isOver = false;

  constructor(
    args: readonly string[],
    options: { env?: NodeJS.ProcessEnv; cwd?: string; script?: string } = {},
  ) {
    const { env = {}, cwd = root, script = main } = options;
    this.child = spawn(process.execPath, [script, ...args], {
      cwd,
      env: { ...process.env, ...env },
    });
    for (const sink of ['stdout', 'stderr'] as const) {
      this.child[sink]?.on('data', (chunk: Buffer) => {
        this.parts[sink].push(chunk);
        this.wake();
      });
    }
    this.ended = new Promise((resolve) => {
      this.child.once('close', (code, signal) => {
        const bytes = Buffer.concat(this.parts.stdout);
        this.isOver = true;
        this.wake();
        resolve({ code, signal, bytes, stdout: bytes.toString(), stderr: this.text('stderr') });
      });
    });
  }

  text(sink: 'stdout' | 'stderr'): string {
    return Buffer.concat(this.parts[sink]).toString();
  }

  async until(sink: 'stdout' | 'stderr', wanted: string): Promise<void> {
    while (!this.text(sink).includes(wanted)) {
      if (this.isOver)
        throw new Error(
          `it ended without "${wanted}": ${this.text('stdout')}${this.text('stderr')}`,
        );
      await new Promise<void>((resolve) => this.waiting.add(resolve));
    }
  }

  private wake(): void {
    for (const resolve of this.waiting) resolve();
    this.waiting.clear();
  }
}

/** Collects what a command prints. */
class Sink extends Writable {
  private readonly parts: Buffer[] = [];

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.parts.push(chunk);
    done();
  }

  get bytes(): Buffer {
    return Buffer.concat(this.parts);
  }
}

/** Runs a command in this process. A server that it starts is the built program. */
export async function runHere(
  args: readonly string[],
  { env = {}, cwd = root }: { env?: NodeJS.ProcessEnv; cwd?: string } = {},
  program: (args: readonly string[], where: InheritedEnvironment) => Promise<number> = runProgram,
): Promise<Ended> {
  process.argv[1] = main;
  const [stdout, stderr] = [new Sink(), new Sink()];
  const code = await program(args, { env: { ...process.env, ...env }, cwd, stdout, stderr });
  const bytes = stdout.bytes;
  return {
    code,
    signal: null,
    bytes,
    stdout: bytes.toString(),
    stderr: stderr.bytes.toString(),
  };
}

/** What a terminal was sent, without the time that a busy machine has shown before the first output. */
export function withoutFirstTimes(shown: string): string {
  // oxlint-disable-next-line no-control-regex
  return shown.replace(/^(?:\r\x1b\[K\x1b\[2m[^\x1b]*\x1b\[0m)+\r\x1b\[K/, '');
}

/** However it is cut; the rest stays unread, and is thrown away as it comes. */
export async function firstLine(stream: NodeJS.ReadableStream): Promise<string> {
  let text = '';
  return new Promise((resolve, reject) => {
    stream.on('data', (chunk: Buffer | string) => {
      text += chunk.toString();
      if (text.includes('\n')) resolve(text.slice(0, text.indexOf('\n')));
    });
    stream.once('close', () => reject(new Error(`it ended without a line: ${text}`)));
  });
}

export interface Envelope {
  readonly ok: boolean;
  readonly command: string;
  readonly timestamp: string;
  readonly result: Readonly<Record<string, unknown>>;
  readonly error: Readonly<Record<string, unknown>>;
}

export class Place {
  readonly folder = mkdtempSync(join(tmpdir(), 'holdfast-cli-'));
  readonly home = join(this.folder, 'home');
  /** Of the keeper whose terminals commands run on. */
  readonly outerHome = join(this.folder, 'terminals');
  readonly env: NodeJS.ProcessEnv;

  /** With these limits for the keeper that the first command starts. */
  constructor(limits?: object) {
    const limited = limits && { HOLDFAST_LIMITS: JSON.stringify(limits) };
    this.env = { HOLDFAST_HOME: this.home, HOLDFAST_IDLE: '1m', ...limited };
  }

  start(...args: string[]): Running {
    return new Running(args, { env: this.env });
  }

  run(...args: string[]): Promise<Ended> {
    return runHere(args, { env: this.env });
  }

  async json(...args: string[]): Promise<Envelope & { readonly code: number | null }> {
    const [command = '', ...rest] = args;
    const { stdout, code } = await this.run(command, '--json', ...rest);
    return { ...(JSON.parse(stdout) as Envelope), code };
  }

  /** The id of a process that was started in the background. */
  async background(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run('run', '--background', ...args);
    if (code !== 0 || stderr !== '') throw new Error(`run ended with ${code}: ${stderr}`);
    return stdout.trim();
  }

  /** One that has ended, with all its output. */
  async finished(...args: string[]): Promise<string> {
    const id = await this.background(...args);
    await this.run('wait', id, '--for', 'closed');
    return id;
  }

  /**
   * What a terminal receives from a command: the command itself runs on a terminal that another keeper holds, for inside
   * a process of this one it would act for the owner of that process. Without colours, so that every control character there
   * is one that should not be.
   */
  async onTerminal(...args: string[]): Promise<{ code: number | null; shown: string }> {
    const [command = '', ...rest] = args;
    const inner = ['--', process.execPath, main, command, '--home', this.home, ...rest];
    const plain = { ...this.env, HOLDFAST_HOME: this.outerHome, NO_COLOR: '1' };
    const { code, stdout } = await runHere(['run', '--pty', ...inner], { env: plain });
    return { code, shown: stdout };
  }

  async close(): Promise<void> {
    await this.run('shutdown');
    await this.run('shutdown', '--home', this.outerHome);
    rmSync(this.folder, { recursive: true });
  }
}
