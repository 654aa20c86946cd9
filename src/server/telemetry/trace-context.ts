// The place of a span in a trace, as the header and label "traceparent" carry it (W3C Trace Context).

import { createHash, randomBytes } from 'node:crypto';
import type { TelemetrySettings } from './otlp-settings.ts';

export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
}

const TRACE_HEX = 32;
const SPAN_HEX = 16;
const SAMPLED = 1;

export function parseTraceParent(text: string | undefined): TraceContext | undefined {
  const found = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/.exec(
    text?.trim() ?? '',
  );
  const [, traceId = '', spanId = '', flags = ''] = found ?? [];
  if (!found || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0 };
}

export function formatTraceParent({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;
}

export function newSpanId(): string {
  return randomBytes(SPAN_HEX / 2).toString('hex');
}

export function newTraceId(): string {
  return randomBytes(TRACE_HEX / 2).toString('hex');
}

/** The same for the same name: a span that is sent twice stays one. */
export function namedIds(name: string): { readonly traceId: string; readonly spanId: string } {
  const hex = createHash('sha256').update(name).digest('hex');
  return { traceId: hex.slice(0, TRACE_HEX), spanId: hex.slice(TRACE_HEX, TRACE_HEX + SPAN_HEX) };
}

/** Whether a trace is exported. */
export function isSampled(
  { ratio, parentDecides }: Pick<TelemetrySettings, 'ratio' | 'parentDecides'>,
  traceId: string,
  parent: TraceContext | undefined,
): boolean {
  if (parent && parentDecides) return parent.isSampled;
  // The last 7 bytes of an id are random by the standard, in foreign ids too.
  return Number.parseInt(traceId.slice(-14), 16) < ratio * 2 ** 56;
}
