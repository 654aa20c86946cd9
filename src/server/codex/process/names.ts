// Names across the border: codex lets a client call a process anything; a host's ids are short and plain. What does not
// fit is known to the host by its sum, and its true name stands in the labels, for the server that comes after this one.

import { createHash } from 'node:crypto';
import type { ProcessInfo } from '../../../protocol/process.ts';
import { RpcError, rpcCodes } from '../rpc.ts';

/** Ids that are sums begin so; a name that does is summed too, so that no choice of names can make two alike. */
const SUM_PREFIX = 'x-';
const PLAIN = /^(?!x-)[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const LABEL = 'codex.name.';
const LABEL_LENGTH = 4000;
const MAX_NAME_LENGTH = 16 * LABEL_LENGTH;

export function hostId(processId: string): string {
  return PLAIN.test(processId) ? processId : SUM_PREFIX + sumOf(processId);
}

/** A write id that fits, and is the same for the same one. */
export function hostWriteId(writeId: string): string {
  return writeId.length <= 256 && !writeId.includes('\0') ? `=${writeId}` : sumOf(writeId);
}

export function nameLabels(processId: string): Record<string, string> {
  if (PLAIN.test(processId)) return {};
  // JSON, because a label holds no NUL.
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

function sumOf(text: string): string {
  return createHash('sha256').update(JSON.stringify(text)).digest('base64url');
}
