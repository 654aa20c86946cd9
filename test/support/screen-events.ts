// A journal for screens: events made from bytes and sizes, and a source that reads them back.

import type { ProcessEvent } from '../../src/protocol/event.ts';
import type { EventSource } from '../../src/screen/emulator/replica.ts';

export type Printed = string | Uint8Array | { readonly cols: number; readonly rows: number };

export class Tape implements EventSource {
  readonly events: ProcessEvent[] = [];
  reads = 0;
  private offset = 0;
  private readonly stepUs: number;

  constructor(printed: readonly Printed[] = [], stepUs = 10_000) {
    this.stepUs = stepUs;
    for (const each of printed) this.print(each);
  }

  /** The event, for feeding it as well. */
  print(printed: Printed): ProcessEvent {
    const seq = this.events.length + 1;
    const stamp = {
      seq,
      offset: this.offset,
      atUs: seq * this.stepUs,
      wallMs: 1_700_000_000_000 + seq,
    };
    let event: ProcessEvent;
    if (typeof printed === 'object' && 'cols' in printed)
      event = { ...stamp, kind: 'resize', body: printed };
    else {
      const data = Buffer.from(printed as Uint8Array);
      event = { ...stamp, kind: 'output', stream: 'pty', data };
      this.offset += data.length;
    }
    this.events.push(event);
    return event;
  }

  async *read(
    after: number,
    upTo = Number.MAX_SAFE_INTEGER,
  ): AsyncIterable<readonly ProcessEvent[]> {
    this.reads += 1;
    const wanted = this.events.filter(({ seq }) => seq > after && seq <= upTo);
    for (let at = 0; at < wanted.length; at += 64) yield wanted.slice(at, at + 64);
  }
}
