// OTLP as JSON: the bodies of /v1/traces and /v1/metrics, with the names of OpenTelemetry's protocol.

import type { Family, Sample } from './metrics.ts';

export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string | undefined;
  readonly name: string;
  readonly kind: 'internal' | 'server';
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  /** What went wrong. */
  readonly error?: string | undefined;
}

export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

const SPAN_KINDS = { internal: 1, server: 2 } as const;
const STATUS_ERROR = 2;
const CUMULATIVE = 2;
const SCOPE = { name: 'holdfast' };

/** By the end of a name; others count things. */
const UNITS: readonly (readonly [RegExp, string])[] = [
  [/_bytes$/, 'By'],
  [/_seconds$/, 's'],
];

export function tracesBody(spans: readonly Span[], resource: Attributes): object {
  const scopeSpans = [{ scope: SCOPE, spans: spans.map(spanData) }];
  return { resourceSpans: [{ resource: { attributes: attributeList(resource) }, scopeSpans }] };
}

export function metricsBody(
  families: readonly Family[],
  resource: Attributes,
  { startMs, nowMs }: { readonly startMs: number; readonly nowMs: number },
): object {
  const times = { startTimeUnixNano: nanoseconds(startMs), timeUnixNano: nanoseconds(nowMs) };
  const metrics = families
    .filter(({ samples }) => samples.length > 0)
    .map((family) => metricData(family, times));
  const scopeMetrics = [{ scope: SCOPE, metrics }];
  return { resourceMetrics: [{ resource: { attributes: attributeList(resource) }, scopeMetrics }] };
}

function spanData({ startMs, endMs, kind, attributes, error, ...span }: Span): object {
  return {
    ...span,
    kind: SPAN_KINDS[kind],
    startTimeUnixNano: nanoseconds(startMs),
    endTimeUnixNano: nanoseconds(endMs),
    attributes: attributeList(attributes),
    ...(error !== undefined && { status: { code: STATUS_ERROR, message: error } }),
  };
}

interface Times {
  readonly startTimeUnixNano: string;
  readonly timeUnixNano: string;
}

function metricData({ name, help, type, samples }: Family, times: Times): object {
  const unit = UNITS.find(([end]) => end.test(name))?.[1] ?? '1';
  const about = { name: `holdfast_${name}`, description: help, unit };
  const dataPoints = samples.map((sample) => pointData(sample, times));
  if (type === 'gauge') return { ...about, gauge: { dataPoints } };
  const aggregationTemporality = CUMULATIVE;
  if (type === 'histogram') return { ...about, histogram: { aggregationTemporality, dataPoints } };
  return { ...about, sum: { aggregationTemporality, isMonotonic: true, dataPoints } };
}

function pointData({ labels = {}, value }: Sample, times: Times): object {
  const attributes = attributeList(labels);
  if (typeof value === 'number') return { ...times, attributes, asDouble: value };
  const { bounds, counts, seconds } = value;
  const count = counts.reduce((all, each) => all + each, 0);
  return {
    ...times,
    attributes,
    count: String(count),
    sum: seconds,
    bucketCounts: counts.map(String),
    explicitBounds: bounds,
  };
}

function attributeList(attributes: Attributes): object[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: attributeValue(value) }],
  );
}

function attributeValue(value: string | number | boolean): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}

/** Milliseconds with fractions, exact to the microsecond. */
function nanoseconds(ms: number): string {
  return `${Math.round(ms * 1000)}000`;
}
