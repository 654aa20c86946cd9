// Whether a command failed because of its sandbox. The kernel reports a refused system call only to the program itself,
// so this guesses as codex does: the command ran in a sandbox, failed, and printed a typical error.

import type { HostApi, Owner } from '../../../protocol/host-api.ts';

/** What a sandboxed process was cut off from; a label, so that later servers know it. */
export const SANDBOX_LABEL = 'codex.sandbox';
export type CutOff = 'files' | 'files and network';

const REFUSED_FILES = /operation not permitted|permission denied|read-only file system/i;
/** In a sandbox without a network hardly anything else causes these. */
const REFUSED_NETWORK =
  /network is unreachable|connection refused|temporary failure in name resolution|could not resolve host/i;
/** Of the output, from both ends. */
const LOOK_BYTES = 256 * 1024;

/** For a process that has exited. */
export async function wasDenied(host: HostApi, owner: Owner, id: string): Promise<boolean> {
  const { labels, outcome } = await host.get(owner, { id });
  const cutOff = labels?.[SANDBOX_LABEL];
  if (cutOff === undefined || outcome?.kind !== 'exit' || outcome.code === 0) return false;
  const { text } = await host.text(owner, { id, maxBytes: LOOK_BYTES });
  return REFUSED_FILES.test(text) || (cutOff !== 'files' && REFUSED_NETWORK.test(text));
}
