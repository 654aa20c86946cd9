// Following the list of processes, the feed of completions and what needs a person, for a page.

import type { Clock } from '../../../base/clock.ts';
import { pause } from '../../../protocol/cancellation.ts';
import { DASHBOARD_SUBSCRIBER } from '../../../protocol/dashboard/subscriber.ts';
import type { HostApi, Owner } from '../../../protocol/host-api.ts';
import type { Channel } from './channel.ts';
import type { WatchMessage } from './watch-messages.ts';

export interface Follower {
  readonly host: HostApi;
  readonly clock: Clock;
  readonly owner: Owner;
  /** Of a shared link: the list has only these. */
  readonly only?: readonly string[] | undefined;
}

/** Changes of states are sent at once, growth of output after this time. */
const GROWTH_MS = 1000;
/** The pause between two messages; changes meanwhile are sent together. */
const BETWEEN_MS = 200;
const COMPLETIONS_WAIT_MS = 25_000;
const COMPLETIONS_AT_ONCE = 1000;

type ListMessage = Extract<WatchMessage, { type: 'list' }>;

export async function followList(
  channel: Channel,
  from: ListMessage,
  { host, clock, owner, only }: Follower,
): Promise<void> {
  const { signal } = channel.gone;
  const isShown = ({ id }: { readonly id: string }): boolean => !only || only.includes(id);
  let cursor = { epoch: from.epoch, after: from.after };
  while (!signal.aborted) {
    const params = { ...cursor, waitMs: GROWTH_MS };
    const { more, ...all } = await host.changes(owner, params, signal);
    const [changed, removed] = [all.changed.filter(isShown), all.removed.filter(isShown)];
    const page = { ...all, changed, removed };
    cursor = { epoch: page.epoch, after: page.version };
    if (page.reset || page.changed.length > 0 || page.removed.length > 0)
      await channel.tell({ type: 'rows', nowMs: clock.wallMs(), more, ...page });
    if (!more) await pause(clock, BETWEEN_MS, signal);
  }
}

type CompletionsMessage = Extract<WatchMessage, { type: 'completions' }>;

export async function followCompletions(
  channel: Channel,
  from: CompletionsMessage,
  { host, owner }: Follower,
): Promise<void> {
  const { signal } = channel.gone;
  const params = { subscriber: DASHBOARD_SUBSCRIBER, limit: COMPLETIONS_AT_ONCE };
  let { after } = from;
  for (let waitMs = 0; !signal.aborted; waitMs = COMPLETIONS_WAIT_MS) {
    const asked = { ...params, after, waitMs };
    const { completions } = await host.completions(owner, asked, signal);
    const last = completions.at(-1);
    if (last || waitMs === 0) await channel.tell({ type: 'completions', completions });
    after = last?.number ?? after;
  }
}

/** How often it is found out what needs a person, while a page looks. */
const ATTENTION_MS = 1000;

type AttentionMessage = Extract<WatchMessage, { type: 'attention' }>;

/** Sent when it has changed. */
export async function followAttention(
  channel: Channel,
  { quietMs }: AttentionMessage,
  { host, clock, owner }: Follower,
): Promise<void> {
  const { signal } = channel.gone;
  let before: string | undefined;
  while (!signal.aborted) {
    const { needs } = await host.attention(owner, { quietMs }, signal);
    const now = JSON.stringify(needs);
    if (now !== before) await channel.tell({ type: 'attention', needs });
    before = now;
    await pause(clock, ATTENTION_MS, signal);
  }
}
