// Streams the events of one process, or all completions, as server-sent events. A page is read only when the client can
// take it, so a slow client costs one page of memory; events it is too slow for are reported as missed.

import type { Completion, HostApi, Owner, Page } from '../../protocol/host-api.ts';
import { followEvents } from '../../base/follow-events.ts';
import { decodeRecords } from '../../protocol/record.ts';
import { nativeEvent } from './events.ts';
import { EventStream, resumeAfter, type SseEvent } from '../http/sse.ts';
import type { Exchange } from '../http/router.ts';

/** Small enough for thousands of followers, large enough that a flood needs few reads. */
const PAGE_BYTES = 128 * 1024;
const COMPLETIONS_PER_PAGE = 1000;

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
  // Before the status is sent, so that an unknown process is a plain error.
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
  const params = { subscriber, limit: COMPLETIONS_PER_PAGE, waitMs: heartbeatMs };
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
