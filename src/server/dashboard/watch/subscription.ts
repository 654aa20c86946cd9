// What a page may follow: each kind of subscription with its follower.

import { HoldfastError } from '../../../protocol/errors.ts';
import type { Owner } from '../../../protocol/host-api.ts';
import type { Terminals } from '../../../terminals/terminals.ts';
import type { Channel } from './channel.ts';
import { followAttention, followCompletions, followList, type Follower } from './follow-list.ts';
import { followLog } from './follow-log.ts';
import { followScreen } from './follow-screen.ts';
import { followThumbnail } from './follow-thumbnail.ts';
import type { WatchMessage } from './watch-messages.ts';

type Subscribing = Extract<
  WatchMessage,
  { type: 'list' | 'completions' | 'attention' | 'log' | 'screen' | 'thumbnail' }
>;

/** `owner`: whose processes the page sees. */
export function subscription(
  message: Subscribing,
  follower: Follower & { readonly terminals: Terminals },
): (channel: Channel) => Promise<void> {
  if (message.type === 'list') return (channel) => followList(channel, message, follower);
  if (message.type === 'completions')
    return (channel) => followCompletions(channel, message, follower);
  if (message.type === 'attention') return (channel) => followAttention(channel, message, follower);
  const target = { ...follower, owner: narrowed(follower.owner, message.owner) };
  if (message.type === 'log') return (channel) => followLog(channel, message, target);
  if (message.type === 'screen') return (channel) => followScreen(channel, message, target);
  return (channel) => followThumbnail(channel, message, target);
}

/** Two owners may use one id: a page that sees all names the owner it means. */
export function narrowed(sees: Owner, named: string): Owner {
  if (sees !== '*' && sees !== named)
    throw new HoldfastError('forbidden', 'This session is for another owner.');
  return named;
}

const SHARED: ReadonlySet<WatchMessage['type']> = new Set([
  'list',
  'log',
  'screen',
  'thumbnail',
  'paint',
  'credit',
  'drop',
]);

/** A shared link follows its own processes and changes nothing. */
export function refuseUnsharedMessage(
  message: WatchMessage,
  only: readonly string[] | undefined,
): void {
  if (!only) return;
  const isOwn = !('id' in message) || only.includes(message.id);
  if (!SHARED.has(message.type) || !isOwn)
    throw new HoldfastError('forbidden', 'This link shows one process and changes nothing.');
}
