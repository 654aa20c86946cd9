// What happens to a server and a keeper while callers use them: killed, stopped, out of disk, out of descriptors. One
// thing at a time, each for so many operations of the callers.

import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ENGINE_FLAGS } from '../../src/base/engine-flags.ts';
import type { ReconnectingHost } from '../../src/server/reconnecting-host.ts';
import { EVERYONE } from '../../src/protocol/host-api.ts';
import type { Dice } from '../support/random.ts';

export const FAULTS = [
  'kill server',
  'stop server',
  'kill keeper',
  'full disk',
  'no descriptors',
] as const;
export type Fault = (typeof FAULTS)[number];

export interface NemesisOptions {
  readonly home: string;
  readonly host: ReconnectingHost;
  readonly roll: Dice;
  /** Resolves when callers have done so many more operations, or can do none. */
  readonly operations: (count: number) => Promise<void>;
  readonly keeperKilled: () => void;
}

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const LASTS_OPERATIONS = 100;
const MiB = 1024 * 1024;

/** A disk that is quickly full; undefined where none can be mounted. */
export function smallDisk(folder: string, bytes: number): (() => void) | undefined {
  const options = `size=${bytes},mode=0700`;
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder]).status !== 0)
    return undefined;
  return () => void spawnSync('umount', ['-l', folder]);
}

export class Nemesis {
  private readonly options: NemesisOptions;
  private server: ChildProcess | undefined;
  readonly done = new Map<Fault, number>();

  constructor(options: NemesisOptions) {
    this.options = options;
  }

  async startServer(): Promise<void> {
    const words = [MAIN, 'serve', '--home', this.options.home, '--json'];
    this.server = spawn(process.execPath, [...ENGINE_FLAGS, ...words], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const gone = once(this.server, 'exit').then(() => false);
    const ready = await Promise.race([once(this.server.stdout ?? this.server, 'data'), gone]);
    if (ready === false) throw new Error('the server did not start');
  }

  async stopServer(): Promise<void> {
    await this.killServer('SIGTERM');
  }

  async strike(fault: Fault): Promise<void> {
    this.done.set(fault, (this.done.get(fault) ?? 0) + 1);
    const { operations } = this.options;
    if (fault === 'kill server') {
      await this.killServer('SIGKILL');
      await this.startServer();
    } else if (fault === 'stop server') {
      this.server?.kill('SIGSTOP');
      await operations(LASTS_OPERATIONS);
      this.server?.kill('SIGCONT');
    } else if (fault === 'kill keeper') {
      const { keeper, ended } = await this.options.host.link();
      this.options.keeperKilled();
      process.kill(keeper.pid, 'SIGKILL');
      await ended;
    } else if (fault === 'full disk') await this.fillDisk();
    else await this.takeDescriptors();
  }

  private async killServer(signal: NodeJS.Signals): Promise<void> {
    if (!this.server || this.server.exitCode !== null || this.server.signalCode !== null) return;
    const gone = once(this.server, 'exit');
    this.server.kill(signal);
    await gone;
  }

  private async fillDisk(): Promise<void> {
    const filler = join(this.options.home, 'filler');
    for (let part = 0; fill(`${filler}${part}`); part += 1);
    await this.options.operations(LASTS_OPERATIONS);
    for (const name of readdirSync(this.options.home))
      if (name.startsWith('filler')) rmSync(join(this.options.home, name));
    await this.stored();
  }

  /** A keeper that is killed while it holds in memory what it cannot store loses that: so the README says. */
  private async stored(): Promise<void> {
    for (;;) {
      const { degraded } = await this.options.host.health(EVERYONE, {});
      if (degraded === 0) return;
      await this.options.operations(LASTS_OPERATIONS / 10);
    }
  }

  private async takeDescriptors(): Promise<void> {
    const { keeper } = await this.options.host.link();
    const pid = this.options.roll.chance(0.5) ? keeper.pid : this.server?.pid;
    if (pid === undefined) return;
    const open = readdirSync(`/proc/${pid}/fd`).length;
    const limit = (soft: string): void =>
      void spawnSync('prlimit', ['--pid', String(pid), `--nofile=${soft}:`]);
    const { stdout } = spawnSync('prlimit', [
      '--pid',
      String(pid),
      '--nofile',
      '-o',
      'SOFT',
      '--noheadings',
    ]);
    limit(String(open + this.options.roll.below(4)));
    await this.options.operations(LASTS_OPERATIONS);
    limit(stdout.toString().trim());
    // Without a descriptor no new file can be made for output.
    await this.stored();
  }
}

/** False when the disk took no more. */
function fill(path: string): boolean {
  try {
    writeFileSync(path, Buffer.alloc(MiB));
    return true;
  } catch {
    // What it took of this one stays: the disk is full.
    return false;
  }
}
