// Following the output of a process by offset. Each piece says where it begins, so a page that lost its connection asks from
// where it is, gets no byte twice, and sees how much is missing where the journal dropped some.

import type { Channel } from './channel.ts';
import { frame } from './channel.ts';
import type { Follower } from './follow-list.ts';
import type { WatchMessage } from './watch-messages.ts';

const PIECE_BYTES = 64 * 1024;
const WAIT_MS = 25_000;

type LogMessage = Extract<WatchMessage, { type: 'log' }>;

export async function followLog(
  channel: Channel,
  { id, offset }: LogMessage,
  { host, owner }: Follower,
): Promise<void> {
  const { signal } = channel.gone;
  let at = offset;
  while (!signal.aborted) {
    const { seq, bytes, state, outcome } = await host.get(owner, { id });
    while (at < bytes.total && !signal.aborted) {
      const range = await host.range(owner, { id, offset: at, maxBytes: PIECE_BYTES }, signal);
      // The rest is no longer stored.
      if (range.bytes.length === 0) break;
      await channel.credit.take(range.bytes.length, signal);
      await channel.send(frame(1, channel.number, range.offset, range.bytes));
      at = range.offset + range.bytes.length;
    }
    if (state === 'closed' || state === 'lost') {
      await channel.tell({ type: 'end', state, outcome, totalBytes: bytes.total });
      return;
    }
    const waits = [{ id, for: [{ kind: 'growth' as const, after: seq }] }];
    await host.wait(owner, { waits, timeoutMs: WAIT_MS }, signal);
  }
}
