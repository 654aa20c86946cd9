// Where what is made of a terminal lies, beside its journal: checkpoints of its screen, pictures, recordings. Nothing in
// there is the truth about it, and all of it may be removed.

import { readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../base/disk.ts';
import type { ProcessInfo } from '../protocol/process.ts';

type Named = Pick<ProcessInfo, 'id' | 'pid' | 'startedAtMs'>;

/** An id may be used again, by another owner or later: with its start it means one terminal only. */
function nameOf({ id, pid, startedAtMs }: Named): string {
  return `${id}.${startedAtMs.toString(36)}.${pid.toString(36)}`;
}

export function terminalFolder(home: string, process: Named): string {
  return join(home, 'terminals', nameOf(process));
}

export function checkpointFolder(home: string, process: Named): string {
  return join(terminalFolder(home, process), 'checkpoints');
}

/** It goes with its process, however that is removed. */
export async function removeTerminalFolder(home: string, process: Named): Promise<void> {
  await rm(terminalFolder(home, process), { recursive: true, force: true });
}

/** Names of the folders that there are. */
export function terminalFolders(home: string): string[] {
  try {
    return readdirSync(join(home, 'terminals'));
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    throw error;
  }
}

/** Folders of terminals that nobody knows any more. */
export function orphanedFolders(
  home: string,
  known: readonly Named[],
  found = terminalFolders(home),
): string[] {
  const names = new Set(known.map(nameOf));
  return found.filter((name) => !names.has(name)).map((name) => join(home, 'terminals', name));
}
