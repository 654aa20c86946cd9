// Maps codex's process names, which may be anything, to host ids, which are short and plain. For a name that is no
// valid id the id is a hash, and labels keep the name for later servers.

import { createHash } from 'node:crypto';
import type { ProcessInfo } from '../../../protocol/process.ts';
import { RpcError, rpcCodes } from '../rpc.ts';

/** The prefix of hashed ids. A name with this prefix is hashed too, so that two names never get the same id. */
const HASH_PREFIX = 'x-';
const PLAIN = /^(?!x-)[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const LABEL = 'codex.name.';
const LABEL_LENGTH = 4000;
const MAX_NAME_LENGTH = 16 * LABEL_LENGTH;

export function hostId(processId: string): string {
  return PLAIN.test(processId) ? processId : HASH_PREFIX + hashOf(processId);
}

/** A valid write id, the same for the same input. */
export function hostWriteId(writeId: string): string {
  return writeId.length <= 256 && !writeId.includes('\0') ? `=${writeId}` : hashOf(writeId);
}

export function nameLabels(processId: string): Record<string, string> {
  if (PLAIN.test(processId)) return {};
  // JSON, because a label must not contain NUL.
  const text = JSON.stringify(processId);
  if (text.length > MAX_NAME_LENGTH)
    throw new RpcError(rpcCodes.invalidParams, `processId is longer than ${MAX_NAME_LENGTH}`);
  const parts = Math.ceil(text.length / LABEL_LENGTH);
  return Object.fromEntries(
    Array.from({ length: parts }, (_, index) => [
      LABEL + index,
      text.slice(index * LABEL_LENGTH, (index + 1) * LABEL_LENGTH),
    ]),
  );
}

export function processIdOf({ id, labels }: Pick<ProcessInfo, 'id' | 'labels'>): string {
  let text = '';
  for (let index = 0; labels?.[LABEL + index] !== undefined; index += 1)
    text += labels[LABEL + index];
  return text === '' ? id : (JSON.parse(text) as string);
}

function hashOf(text: string): string {
  return createHash('sha256').update(JSON.stringify(text)).digest('base64url');
}
