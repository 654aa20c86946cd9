// Events as the native routes tell them: what the journal holds, in JSON. Output is text where it is UTF-8 and base64
// where it is not, so that no byte is changed on its way.

import { isUtf8 } from 'node:buffer';
import type { EventBody, EventStamp, ProcessEvent, Stream } from '../../protocol/event.ts';
import type { Page } from '../../protocol/host-api.ts';
import { decodeRecords } from '../../protocol/record.ts';

interface NativeOutput {
  readonly kind: 'output';
  readonly stream: Stream;
  /** Exactly one of the two. */
  readonly text?: string;
  readonly base64?: string;
}

export type NativeEvent = EventStamp & (NativeOutput | Exclude<EventBody, { kind: 'output' }>);

export type NativePage = Omit<Page, 'records'> & { readonly events: readonly NativeEvent[] };

/** What the host notes for its own use, and nobody outside can use. */
const INTERNAL = new Set(['serial', 'fingerprint', 'bootId', 'segments', 'started']);

export function nativeEvent(event: ProcessEvent): NativeEvent {
  if (event.kind === 'started') {
    const { pid, ...facts } = event.body;
    const shown = Object.entries(facts).filter(([name]) => !INTERNAL.has(name));
    return { ...event, body: { pid, ...Object.fromEntries(shown) } };
  }
  if (event.kind === 'closed') {
    const { bytes, ...facts } = event.body;
    const shown = Object.entries(facts).filter(([name]) => !INTERNAL.has(name));
    return { ...event, body: { bytes, ...Object.fromEntries(shown) } as typeof event.body };
  }
  if (event.kind !== 'output') return event;
  const { data, ...rest } = event;
  return { ...rest, ...(isUtf8(data) ? { text: data.toString('utf8') } : base64Of(data)) };
}

export function nativePage({ records, ...page }: Page): NativePage {
  return { events: Array.from(decodeRecords(records), nativeEvent), ...page };
}

function base64Of(data: Buffer): { base64: string } {
  return { base64: data.toString('base64') };
}
