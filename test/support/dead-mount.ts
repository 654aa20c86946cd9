// A file system that does not answer, as a network mount whose other side is gone.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { onCleanup, program, temporaryFolder } from './hosts.ts';

/** A directory on which everybody who looks stands still. */
export async function deadMount(): Promise<string> {
  const point = join(temporaryFolder(), 'dead');
  mkdirSync(point);
  const mounting = spawn('python3', [program('dead-mount.py'), point], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onCleanup(async () => {
    const gone = once(mounting, 'exit');
    mounting.stdin.end();
    await gone;
  });
  await once(mounting.stdout, 'data');
  return point;
}

/** Mounting needs root and FUSE. */
export function canMount(): boolean {
  try {
    accessSync('/dev/fuse', constants.R_OK | constants.W_OK);
  } catch {
    return false;
  }
  const capable = spawnSync('unshare', ['--mount', 'true']).status === 0;
  return process.getuid?.() === 0 && capable && spawnSync('python3', ['--version']).status === 0;
}
