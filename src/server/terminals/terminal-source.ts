// The journal of a terminal as its screen reads it: pages of events, asked of the host.

import type { ProcessEvent } from '../../protocol/event.ts';
import type { HostApi, Owner } from '../../protocol/host-api.ts';
import { decodeRecords } from '../../protocol/record.ts';
import type { EventSource } from '../../screen/replica.ts';

/** Large: a screen is built of everything that was printed. */
const PAGE_BYTES = 1024 * 1024;

export function terminalSource(host: HostApi, owner: Owner, id: string): EventSource {
  return {
    async *read(after: number, upTo = Infinity): AsyncGenerator<readonly ProcessEvent[]> {
      let at = after;
      let end = upTo;
      while (at < end) {
        const page = await host.read(owner, { id, after: at, maxBytes: PAGE_BYTES });
        // What comes while this is read belongs to the next reading.
        end = Math.min(end, page.seq);
        const events = Array.from(decodeRecords(page.records)).filter(({ seq }) => seq <= end);
        if (events.length > 0) yield events;
        if (page.nextAfter === at) return;
        at = page.nextAfter;
      }
    },
  };
}
