// The journal of a terminal as pages of events, read from the host.

import type { ProcessEvent } from '../protocol/event.ts';
import type { HostApi, Owner } from '../protocol/host-api.ts';
import { followEvents } from '../base/follow-events.ts';
import { decodeRecords } from '../protocol/record.ts';
import type { EventSource } from '../screen/emulator/replica.ts';

/** Large, because a screen is built from all output. */
const PAGE_BYTES = 1024 * 1024;

export function terminalSource(host: HostApi, owner: Owner, id: string): EventSource {
  return {
    async *read(after: number, upTo = Infinity): AsyncGenerator<readonly ProcessEvent[]> {
      let end = upTo;
      if (after >= end) return;
      const pages = followEvents(
        (position) => host.read(owner, { id, ...position, maxBytes: PAGE_BYTES }),
        { after },
        'now',
      );
      for await (const page of pages) {
        // Events that arrive meanwhile belong to the next read.
        end = Math.min(end, page.seq);
        const events = Array.from(decodeRecords(page.records)).filter(({ seq }) => seq <= end);
        if (events.length > 0) yield events;
        if (page.nextAfter >= end) return;
      }
    },
  };
}
