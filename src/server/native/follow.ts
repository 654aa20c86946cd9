// Following: the events of one process, or the ends of all, as they come. A page is asked for only when the reader has
// room, so a slow one costs a page and not the output; what it is too slow for it is told it has missed.

import type { Completion, HostApi, Owner, Page } from '../../protocol/host-api.ts';
import { followEvents } from '../../base/follow-events.ts';
import { decodeRecords } from '../../protocol/record.ts';
import { nativeEvent } from './events.ts';
import { EventStream, resumeAfter, type SseEvent } from '../http/sse.ts';
import type { Exchange } from '../http/router.ts';

/** Small enough that thousands of followers fit, large enough that a flood needs few questions. */
const PAGE_BYTES = 128 * 1024;
const COMPLETIONS_AT_ONCE = 1000;

export interface FollowOptions {
  readonly host: HostApi;
  readonly heartbeatMs: number;
}

export async function followProcess(
  exchange: Exchange,
  target: { readonly owner: Owner; readonly id: string; readonly after: number | undefined },
  { host, heartbeatMs }: FollowOptions,
): Promise<void> {
  const after = resumeAfter(exchange, target.after);
  // Before the status is sent: an unknown process is still a plain error.
  const { id, owner } = await host.get(target.owner, { id: target.id });
  const stream = new EventStream(exchange);
  try {
    const size = { maxBytes: PAGE_BYTES, waitMs: heartbeatMs };
    const pages = followEvents(
      (position) => host.read(owner, { id, ...position, ...size }, exchange.gone),
      { after },
    );
    for await (const page of pages) await stream.send(eventsOf(page));
    stream.end();
  } catch (error) {
    await stream.fail(error);
  }
}

function eventsOf(page: Page): SseEvent[] {
  const { missed, state, outcome } = page;
  const events: SseEvent[] = [];
  if (missed) events.push({ id: missed.toSeq, event: 'missed', data: missed });
  for (const event of decodeRecords(page.records))
    events.push({ id: event.seq, event: event.kind, data: nativeEvent(event) });
  if (page.end) events.push({ event: 'end', data: { state, ...(outcome && { outcome }) } });
  return events;
}

export async function followCompletions(
  exchange: Exchange,
  target: {
    readonly owner: Owner;
    readonly subscriber: string | undefined;
    readonly after: number | undefined;
  },
  { host, heartbeatMs }: FollowOptions,
): Promise<void> {
  const { owner, subscriber } = target;
  let after = resumeAfter(exchange, target.after);
  const stream = new EventStream(exchange);
  const params = { subscriber, limit: COMPLETIONS_AT_ONCE, waitMs: heartbeatMs };
  try {
    for (;;) {
      const { completions } = await host.completions(owner, { ...params, after }, exchange.gone);
      await stream.send(completions.map(completionEvent));
      after = completions.at(-1)?.number ?? after;
    }
  } catch (error) {
    await stream.fail(error);
  }
}

function completionEvent(completion: Completion): SseEvent {
  return { id: completion.number, event: 'completion', data: completion };
}
