// Spans of requests and of processes. A process that a request starts carries the place of that request in its trace as the
// label "traceparent", so that its span has the right parent, also when another server exports it.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../../base/clock.ts';
import type { Completion } from '../../protocol/host-api.ts';
import type { Outcome } from '../../protocol/process.ts';
import type { Params } from '../../protocol/operations.ts';
import type { KeeperLink } from '../../keeper/link.ts';
import type { RequestTracer, TracedRequest } from '../http/request-context.ts';
import type { Span } from './otlp-data.ts';
import type { TelemetrySettings } from './otlp-settings.ts';
import {
  formatTraceParent,
  isSampled,
  namedIds,
  newSpanId,
  newTraceId,
  parseTraceParent,
  type TraceContext,
} from './trace-context.ts';

type Sampling = Pick<TelemetrySettings, 'ratio' | 'parentDecides'>;

interface RequestSpan extends TraceContext {
  readonly parentSpanId: string | undefined;
  readonly startMs: number;
}

const LABEL = 'traceparent';

export class Tracing implements RequestTracer<RequestSpan> {
  private readonly current = new AsyncLocalStorage<RequestSpan>();
  private readonly sampling: Sampling;
  private readonly clock: Clock;
  private readonly export: (span: Span) => void;

  constructor(sampling: Sampling, clock: Clock, exportSpan: (span: Span) => void) {
    this.sampling = sampling;
    this.clock = clock;
    this.export = exportSpan;
  }

  begin(headers: IncomingHttpHeaders): RequestSpan {
    const given = headers[LABEL];
    const parent = typeof given === 'string' ? parseTraceParent(given) : undefined;
    const traceId = parent?.traceId ?? newTraceId();
    return {
      traceId,
      spanId: newSpanId(),
      isSampled: isSampled(this.sampling, traceId, parent),
      parentSpanId: parent?.spanId,
      startMs: this.clock.wallMs(),
    };
  }

  within<T>(span: RequestSpan, act: () => T): T {
    return this.current.run(span, act);
  }

  end(span: RequestSpan, { method, route, status, refusal, tookUs }: TracedRequest): void {
    const { traceId, spanId, parentSpanId, startMs } = span;
    if (!span.isSampled) return;
    this.export({
      traceId,
      spanId,
      parentSpanId,
      name: route ?? method,
      kind: 'server',
      startMs,
      endMs: startMs + tookUs / 1000,
      attributes: {
        'http.request.method': method,
        'http.route': route?.slice(route.indexOf(' ') + 1),
        'http.response.status_code': status,
        'error.type': refusal,
      },
      error: status >= 500 ? (refusal ?? String(status)) : undefined,
    });
  }

  /** A link whose starts carry the trace of the request that asks for them. */
  traced(link: KeeperLink): KeeperLink {
    const { deliver } = link;
    return {
      ...link,
      start: (owner, params, signal) => link.start(owner, this.labelled(params), signal),
      ...(deliver && {
        deliver: (owner, delivery, signal) => {
          if (delivery.op !== 'start') return deliver(owner, delivery, signal);
          return deliver(owner, { ...delivery, params: this.labelled(delivery.params) }, signal);
        },
      }),
    };
  }

  private labelled(params: Params<'start'>): Params<'start'> {
    const span = this.current.getStore();
    if (!span || params.labels?.[LABEL] !== undefined) return params;
    return { ...params, labels: { ...params.labels, [LABEL]: formatTraceParent(span) } };
  }
}

/** Undefined if its trace is not exported. */
export function processSpan(completion: Completion, sampling: Sampling): Span | undefined {
  const { id, owner, name, outcome, durationMs, atMs, bytes, labels, usage } = completion;
  const startMs = atMs - durationMs;
  const parent = parseTraceParent(labels?.[LABEL]);
  const own = namedIds(JSON.stringify([owner, id, startMs]));
  const traceId = parent?.traceId ?? own.traceId;
  if (!isSampled(sampling, traceId, parent)) return undefined;
  return {
    traceId,
    spanId: own.spanId,
    parentSpanId: parent?.spanId,
    name: name === undefined ? 'process' : `process ${name}`,
    kind: 'internal',
    startMs,
    endMs: atMs,
    // Neither the command nor its output: both may contain secrets.
    attributes: {
      'holdfast.process.id': id,
      'holdfast.owner': owner,
      'holdfast.outcome': outcome.kind,
      'holdfast.output.bytes': bytes,
      'process.exit.code': 'code' in outcome ? outcome.code : undefined,
      'holdfast.signal': 'signal' in outcome ? outcome.signal : undefined,
      'holdfast.cpu.seconds': usage && (usage.userMs + usage.systemMs) / 1000,
      'holdfast.memory.peak_bytes': usage?.peakMemoryBytes,
    },
    error: failure(outcome),
  };
}

function failure(outcome: Outcome): string | undefined {
  if (outcome.kind !== 'exit') return outcome.kind;
  return outcome.code === 0 ? undefined : `exit code ${outcome.code}`;
}
