// Removes a process: ends it with its descendants, then deletes it with its files.

import { HoldfastError } from '../protocol/errors.ts';
import type { HeldProcess } from './process/held-process.ts';
import type { ProcessLifecycle } from './lifecycle.ts';

export async function removeProcess(
  lifecycle: Pick<ProcessLifecycle, 'end' | 'registry'>,
  process: HeldProcess,
  by: string,
): Promise<void> {
  const ended = process.settled ? undefined : await lifecycle.end(process, by);
  if (ended?.unsearched) throw unsearched(process);
  process.abandon();
  const problem = lifecycle.registry.forget(process, by, true);
  if (problem) throw problem;
}

/** Deleted now, its descendants could never be found again. */
function unsearched({ facts: { id } }: HeldProcess): HoldfastError {
  const problem = `Process "${id}" is not removed: no file descriptor is free to look for its descendants.`;
  return new HoldfastError('too_many_files', problem, { id });
}
