// One write to a process, from the caller's bytes to the number of its event.

import type { Results } from '../../protocol/host-api.ts';
import type { Params } from '../../protocol/operations.ts';
import { Journal } from '../../journal/write/journal.ts';
import type { HeldProcess } from './held-process.ts';

export async function writeInput(
  process: HeldProcess,
  params: Omit<Params<'write'>, 'id'>,
): Promise<Results['write']> {
  const { data = Buffer.alloc(0), eof = false, queued = false, ...meant } = params;
  const writing = process.write(Buffer.from(data), meant);
  // Queued: refused now or accepted; later errors are not reported.
  const accepted = { bytes: data.length, repeated: false, seq: process.journal.visibleSeq };
  const written = await (queued
    ? Promise.race([writing, turnOver().then(() => accepted)])
    : writing);
  writing.catch(() => undefined);
  if (eof && !written.repeated) process.endInput();
  if (!queued) await recorded(process, written.seq);
  return written;
}

/** The number of an event, when that is visible. */
export async function recorded({ journal }: HeldProcess, seq: number): Promise<{ seq: number }> {
  if (journal instanceof Journal && journal.visibleSeq < seq) await journal.visible();
  return { seq };
}

/** Resolves when a refusal would have been reported. */
function turnOver(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
