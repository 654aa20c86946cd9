// The folder of files derived from a terminal's journal: screen checkpoints, pictures, recordings. All of it may be
// deleted.

import { readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../base/disk.ts';
import type { ProcessInfo } from '../protocol/process.ts';

type Named = Pick<ProcessInfo, 'id' | 'pid' | 'startedAtMs'>;

/** An id may be reused, by another owner or later; together with the start it is unique. */
function nameOf({ id, pid, startedAtMs }: Named): string {
  return `${id}.${startedAtMs.toString(36)}.${pid.toString(36)}`;
}

export function terminalFolder(home: string, process: Named): string {
  return join(home, 'terminals', nameOf(process));
}

export function checkpointFolder(home: string, process: Named): string {
  return join(terminalFolder(home, process), 'checkpoints');
}

export async function removeTerminalFolder(home: string, process: Named): Promise<void> {
  await rm(terminalFolder(home, process), { recursive: true, force: true });
}

/** Names of all such folders. */
export function terminalFolders(home: string): string[] {
  try {
    return readdirSync(join(home, 'terminals'));
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    throw error;
  }
}

/** Folders of terminals that no longer exist. */
export function orphanedFolders(
  home: string,
  known: readonly Named[],
  found = terminalFolders(home),
): string[] {
  const names = new Set(known.map(nameOf));
  return found.filter((name) => !names.has(name)).map((name) => join(home, 'terminals', name));
}
