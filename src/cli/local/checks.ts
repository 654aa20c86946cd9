// Checks of this machine: what `holdfast doctor` and `tty doctor` look at, one after the other.

import { existsSync, mkdtempSync, statfsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Caller } from '../caller.ts';
import { formatBytes } from '../arguments/units.ts';

export interface Check {
  readonly name: string;
  /** The check that must have passed before this one is worth a try. */
  readonly needs?: string;
  /** Returns what was found, and throws what is wrong. */
  readonly find: (caller: Caller) => string | Promise<string>;
}

export interface CheckResult {
  readonly name: string;
  readonly status: 'pass' | 'fail' | 'skip';
  readonly message: string;
  readonly durationMs: number;
}

/** Below this a few busy processes fill the disk. */
const LITTLE_SPACE_BYTES = 256 * 1024 * 1024;

export async function performChecks(
  checks: readonly Check[],
  caller: Caller,
): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  for (const { name, needs, find } of checks) {
    const begun = performance.now();
    const add = (status: CheckResult['status'], message: string): void => {
      results.push({ name, status, message, durationMs: Math.round(performance.now() - begun) });
    };
    if (results.some((each) => each.name === needs && each.status !== 'pass'))
      add('skip', `needs ${needs}`);
    else
      try {
        add('pass', await find(caller));
      } catch (error) {
        add('fail', error instanceof Error ? error.message : String(error));
      }
  }
  return results;
}

export function findNode(): string {
  const { node } = process.versions;
  const [major = 0, minor = 0] = node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return node;
  throw new Error(`${node}; 20.19 or newer is needed`);
}

export async function findSystemCalls(): Promise<string> {
  const { loadPosix, posixProblem } = await import('../../system/posix.ts');
  if (loadPosix() === undefined) throw new Error(posixProblem() ?? 'No system calls.');
  return 'system calls can be made';
}

/** Of the home, or of where it will be made. */
export function findDiskSpace({ home }: Caller): string {
  let folder = home;
  while (!existsSync(folder)) folder = dirname(folder);
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  if (free < LITTLE_SPACE_BYTES)
    throw new Error(`The disk is nearly full: ${formatBytes(free)} free.`);
  return `${formatBytes(free)} free`;
}

/** Hands a new folder in `parent` to `use`, and removes it. */
export async function withFolder(
  parent: string,
  use: (folder: string) => void = () => undefined,
): Promise<void> {
  const folder = mkdtempSync(join(parent, 'holdfast-doctor-'));
  try {
    use(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}
