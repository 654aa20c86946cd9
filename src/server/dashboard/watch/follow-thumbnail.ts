// Following a terminal as a small picture: the lines that changed, a few times a second. What comes between two pictures is
// never sent, so a flood costs as much as a clock.

import { pause } from '../../../protocol/cancellation.ts';
import type { ThumbnailMessage } from '../../../protocol/dashboard/thumbnail.ts';
import type { Terminals } from '../../../terminals/terminals.ts';
import { lazyModules } from '../../lazy-modules.ts';
import type { Channel } from './channel.ts';
import type { Follower } from './follow-list.ts';
import type { WatchMessage } from './watch-messages.ts';

const WAIT_MS = 25_000;
const DEFAULT_HZ = 2;

type Subscribing = Extract<WatchMessage, { type: 'thumbnail' }>;

export async function followThumbnail(
  channel: Channel,
  { id, hz = DEFAULT_HZ, theme }: Subscribing,
  { host, clock, owner, terminals }: Follower & { readonly terminals: Terminals },
): Promise<void> {
  const { signal } = channel.gone;
  const { Thumbnail } = await lazyModules.thumbnails();
  const thumbnail = new Thumbnail(theme);
  const session = await terminals.open(owner, id);
  let seen = -1;
  while (!signal.aborted) {
    const { seq, state } = await host.get(owner, { id });
    if (seq > seen) {
      const view = await terminals.look(session, { signal }, async (found) => found);
      seen = Math.max(seq, view.seq);
      const { cols, rows, cursor, title } = view.look;
      const lines = thumbnail.changedLines(view.look);
      const isShown = cursor.visible && state === 'running';
      const message: ThumbnailMessage = {
        seq: view.seq,
        cols,
        rows,
        lines,
        title,
        ...(isShown && { cursor: [cursor.row, cursor.col] }),
      };
      await channel.credit.take(JSON.stringify(lines).length, signal);
      await channel.tell({ type: 'thumbnail', ...message });
    }
    if (state === 'closed' || state === 'lost') {
      await channel.tell({ type: 'end', state });
      return;
    }
    await pause(clock, 1000 / hz, signal);
    const waits = [{ id, for: [{ kind: 'growth' as const, after: seen }] }];
    await host.wait(owner, { waits, timeoutMs: WAIT_MS }, signal);
  }
}
