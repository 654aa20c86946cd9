// Journal events as JSON. Output is text if it is UTF-8, otherwise base64, so that every byte is preserved.

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

/** Facts that only the host uses. */
const INTERNAL = new Set(['serial', 'fingerprint', 'bootId', 'segments', 'started']);

export function nativeEvent(event: ProcessEvent): NativeEvent {
  if (event.kind === 'started') return { ...event, body: withoutInternal(event.body) };
  if (event.kind === 'closed') return { ...event, body: withoutInternal(event.body) };
  if (event.kind !== 'output') return event;
  const { data, ...rest } = event;
  if (isUtf8(data)) return { ...rest, text: data.toString('utf8') };
  return { ...rest, base64: data.toString('base64') };
}

function withoutInternal<T extends object>(facts: T): T {
  return Object.fromEntries(Object.entries(facts).filter(([name]) => !INTERNAL.has(name))) as T;
}

export function nativePage({ records, ...page }: Page): NativePage {
  return { events: Array.from(decodeRecords(records), nativeEvent), ...page };
}
