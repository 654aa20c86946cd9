// Answers about a process from the archive, when no host can, and removes it there.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Owner, Results } from '../../protocol/host-api.ts';
import type { OperationName, Params } from '../../protocol/operations.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import type { ArchiveReader } from './archive-reader.ts';

/** They change nothing, and concern one process. */
const reads = new Set<OperationName>(['get', 'read', 'range', 'text', 'search']);

interface Question<Name extends OperationName> {
  readonly op: Name;
  readonly owner: Owner;
  readonly id: string;
  readonly params: Params<Name>;
  readonly signal: CancelSignal | undefined;
}

/** Throws the given error if the archive cannot answer: the host has the last word about what it has. */
export async function readArchived<Name extends OperationName>(
  archive: ArchiveReader | undefined,
  { op, owner, id, params, signal }: Question<Name>,
  error: unknown,
): Promise<Results[Name]> {
  const isAway =
    error instanceof HoldfastError &&
    (error.code === 'not_found' || error.code === 'host_unreachable');
  if (!archive || !isAway || !reads.has(op)) throw error;
  const answer = await archive.use(owner, id, async ({ api, manifest }) => {
    const call = api[op] as (...args: unknown[]) => Promise<unknown>;
    return named(op, await call.call(api, manifest.owner, params, signal), manifest.host);
  });
  if (answer === undefined) throw error;
  return answer as Results[Name];
}

/** What only the archive has is removed too. A host that may still have the process would archive it again: it goes first. */
export async function removeWithCopy(
  archive: ArchiveReader | undefined,
  owner: Owner,
  id: string,
  removing: Promise<unknown>,
): Promise<void> {
  let missing: HoldfastError | undefined;
  try {
    await removing;
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== 'not_found') throw error;
    missing = error;
  }
  const wasArchived = await archive?.remove(owner, id);
  if (missing && !wasArchived) throw missing;
}

function named(op: OperationName, answer: unknown, host: string): unknown {
  const mark = (process: ProcessInfo): ProcessInfo => ({ ...process, host, archived: true });
  if (op === 'get') return mark(answer as ProcessInfo);
  if (op !== 'text') return answer;
  const result = answer as Results['text'];
  return { ...result, process: mark(result.process) };
}
