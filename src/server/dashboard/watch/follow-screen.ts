// Following a terminal: first its screen as it is, then every event. A page that falls far behind a flood is shown the screen
// anew, with the number of bytes it did not draw; the log still has them.

import { followEvents, type Position } from '../../../base/follow-events.ts';
import type { TerminalSize } from '../../../protocol/process.ts';
import type { Page } from '../../../protocol/host-api.ts';
import { decodeRecords } from '../../../protocol/record.ts';
import type { Terminals } from '../../../terminals/terminals.ts';
import { nativeEvent } from '../../native/events.ts';
import { frame, type Channel } from './channel.ts';
import type { Follower } from './follow-list.ts';
import type { WatchMessage } from './watch-messages.ts';

const PAGE_BYTES = 64 * 1024;
const WAIT_MS = 25_000;
/** A page that is further behind than this is shown the screen instead. */
const MOST_BEHIND_BYTES = 1024 * 1024;
/** How often that is looked at: an echo is not worth the question. */
const LOOK_BYTES = 256 * 1024;

type ScreenMessage = Extract<WatchMessage, { type: 'screen' }>;
type ScreenFollower = Follower & { readonly terminals: Terminals };

export async function followScreen(
  channel: Channel,
  message: ScreenMessage,
  follower: ScreenFollower,
): Promise<void> {
  let from = message.after ?? (await paint(channel, message.id, follower, 0));
  while (!channel.gone.signal.aborted) {
    const behind = await follow(channel, message.id, follower, from);
    if (behind === undefined) return;
    from = await paint(channel, message.id, follower, behind);
  }
}

/** The bytes that it is behind when that is too much; undefined when the terminal has ended. */
async function follow(
  channel: Channel,
  id: string,
  { host, owner }: ScreenFollower,
  after: number,
): Promise<number | undefined> {
  const { signal } = channel.gone;
  const size = { maxBytes: PAGE_BYTES, waitMs: WAIT_MS };
  const read = (position: Position): Promise<Page> =>
    host.read(owner, { id, ...position, ...size }, signal);
  let sent = 0;
  for await (const page of followEvents(read, { after })) {
    await sendPage(channel, page);
    if (page.end) break;
    sent += page.records.length;
    if (sent < LOOK_BYTES) continue;
    sent = 0;
    const { bytes } = await host.get(owner, { id });
    const behind = bytes.total - page.nextOffset;
    if (behind > MOST_BEHIND_BYTES) return behind;
  }
  return undefined;
}

async function paint(
  channel: Channel,
  id: string,
  follower: ScreenFollower,
  skippedBytes: number,
): Promise<number> {
  const painted = await paintedScreen(follower, id);
  await channel.tell({ type: 'painted', ...painted, skippedBytes });
  return painted.seq;
}

interface PaintedScreen {
  readonly seq: number;
  readonly size: TerminalSize;
  /** Bytes for an empty terminal of that size. */
  readonly screen: string;
}

/** The screen now, or as it was after an event. */
export async function paintedScreen(
  { owner, terminals }: Pick<ScreenFollower, 'owner' | 'terminals'>,
  id: string,
  at?: number,
): Promise<PaintedScreen> {
  const session = await terminals.open(owner, id);
  const look = { behind: true, ...(at !== undefined && { at }) };
  return terminals.look(session, look, async (view, pictures) => {
    const { cols, rows } = view.look;
    const { seq } = view;
    return { seq, size: { cols, rows }, screen: await pictures.repaint(view) };
  });
}

async function sendPage(channel: Channel, page: Page): Promise<void> {
  const { signal } = channel.gone;
  if (page.missed) await channel.tell({ type: 'missed', ...page.missed });
  for (const event of decodeRecords(page.records)) {
    if (signal.aborted) return;
    if (event.kind === 'output') {
      await channel.credit.take(event.data.length, signal);
      await channel.send(frame(2, channel.number, event.seq, event.data));
    } else if (event.kind !== 'input')
      await channel.tell({ type: 'event', event: nativeEvent(event) });
  }
  if (page.end) await channel.tell({ type: 'end', state: page.state, outcome: page.outcome });
}
