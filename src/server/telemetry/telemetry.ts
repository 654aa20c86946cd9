// Traces and metrics for OpenTelemetry, exported by OTLP. Loaded only where an exporter is configured. Spans of processes come
// from the completion feed and are acknowledged when the collector has them: a restart of either loses none.

import { hostname } from 'node:os';
import type { Clock } from '../../base/clock.ts';
import { VERSION } from '../../base/version.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { EVERYONE, type HostApi } from '../../protocol/host-api.ts';
import type { KeeperLink } from '../../keeper/link.ts';
import type { RequestTracer } from '../http/request-context.ts';
import type { MeasuredHost, Metrics } from './metrics.ts';
import { metricsBody, tracesBody, type Attributes, type Span } from './otlp-data.ts';
import { OtlpSender } from './otlp-sender.ts';
import { telemetrySettings, type TelemetrySettings } from './otlp-settings.ts';
import { processSpan, Tracing } from './tracing.ts';

export interface TelemetryOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
  readonly report: (problem: string) => void;
}

/** Without a home for a fleet, whose hosts export their own processes. */
export interface Telemetered extends Omit<MeasuredHost, 'owner'> {
  readonly metrics: Metrics;
}

export interface Telemetry {
  readonly tracer: RequestTracer<unknown> | undefined;
  traced(link: KeeperLink): KeeperLink;
  open(of: Telemetered): void;
  close(): Promise<void>;
}

const SUBSCRIBER = 'otlp';
const PAGE_SIZE = 100;
/** The host answers as soon as there is a completion. */
const WAIT_MS = 24 * 60 * 60_000;
/** Spans of requests that wait for a collector that does not answer; further ones are dropped. */
const MOST_SPANS = 2048;
const BATCH_SPANS = 512;
const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [1000, 60_000];
/** How long the end of the server waits for the last export. */
const LAST_MS = 2000;

/** Undefined where the variables turn it off. */
export function openTelemetry(options: TelemetryOptions): Telemetry | undefined {
  const settings = telemetrySettings(options.env, options.report);
  return settings && new OtlpTelemetry(settings, options);
}

class OtlpTelemetry implements Telemetry {
  readonly tracer: Tracing | undefined;
  private readonly settings: TelemetrySettings;
  private readonly options: TelemetryOptions;
  private readonly resource: Attributes;
  private readonly traces: OtlpSender | undefined;
  private readonly metrics: OtlpSender | undefined;
  private readonly startMs: number;
  private readonly ending = new AbortController();
  private spans: Span[] = [];
  private cancelSpans: (() => void) | undefined;
  private cancelMetrics: (() => void) | undefined;
  private sending: Promise<void> | undefined;
  private following: Promise<void> | undefined;
  private of: Telemetered | undefined;

  constructor(settings: TelemetrySettings, options: TelemetryOptions) {
    const { clock, report } = options;
    this.settings = settings;
    this.options = options;
    this.startMs = clock.wallMs();
    this.resource = {
      'service.name': 'holdfast',
      'service.version': VERSION,
      'host.name': hostname(),
      ...settings.resource,
    };
    this.traces = settings.traces && new OtlpSender(settings.traces, report);
    this.metrics = settings.metrics && new OtlpSender(settings.metrics, report);
    this.tracer = this.traces && new Tracing(settings, clock, (span) => this.add(span));
  }

  traced(link: KeeperLink): KeeperLink {
    return this.tracer?.traced(link) ?? link;
  }

  open(of: Telemetered): void {
    this.of = of;
    if (this.metrics) this.exportMetricsLater();
    if (this.traces && of.home !== undefined) this.following = this.follow(this.traces, of.host);
  }

  async close(): Promise<void> {
    this.cancelMetrics?.();
    this.cancelSpans?.();
    this.ending.abort();
    const last = Promise.all([this.following, this.sendSpans(), this.exportMetrics()]);
    const late = new Promise<void>((resolve) => void setTimeout(resolve, LAST_MS).unref());
    await Promise.race([last, late]);
  }

  private add(span: Span): void {
    if (this.spans.length >= MOST_SPANS) return;
    this.spans.push(span);
    if (this.spans.length >= BATCH_SPANS) void this.sendSpans();
    else this.sendSpansLater();
  }

  private sendSpansLater(): void {
    this.cancelSpans ??= this.options.clock.after(this.settings.spanDelayMs, () => {
      this.cancelSpans = undefined;
      void this.sendSpans();
    });
  }

  /** One batch at a time. */
  private sendSpans(): Promise<void> {
    this.sending ??= this.sendBatch().finally(() => (this.sending = undefined));
    return this.sending;
  }

  private async sendBatch(): Promise<void> {
    const batch = this.spans.slice(0, BATCH_SPANS);
    if (batch.length === 0 || !this.traces) return;
    const sent = await this.traces.send(tracesBody(batch, this.resource));
    if (sent !== 'later') this.spans.splice(0, batch.length);
    if (this.spans.length > 0 && !this.ending.signal.aborted) this.sendSpansLater();
  }

  private exportMetricsLater(): void {
    this.cancelMetrics = this.options.clock.after(this.settings.metricIntervalMs, () => {
      void this.exportMetrics().then(() => {
        if (!this.ending.signal.aborted) this.exportMetricsLater();
      });
    });
  }

  private async exportMetrics(): Promise<void> {
    if (!this.metrics || !this.of) return;
    const { metrics, ...measured } = this.of;
    try {
      const families = await metrics.families({ ...measured, owner: EVERYONE });
      const times = { startMs: this.startMs, nowMs: this.options.clock.wallMs() };
      await this.metrics.send(metricsBody(families, this.resource, times));
    } catch (error) {
      // The keeper is being replaced: the next export has the figures.
      if (!(error instanceof HoldfastError)) throw error;
    }
  }

  private async follow(traces: OtlpSender, host: HostApi): Promise<void> {
    const { signal } = this.ending;
    for (let pauseMs = 0; !signal.aborted;) {
      const ok = await this.exportPage(traces, host);
      pauseMs = ok ? 0 : Math.min(Math.max(FIRST_PAUSE_MS, pauseMs * 2), LONGEST_PAUSE_MS);
      if (!ok) await this.pause(pauseMs);
    }
  }

  /** False: try again later. */
  private async exportPage(traces: OtlpSender, host: HostApi): Promise<boolean> {
    const { signal } = this.ending;
    try {
      const query = { subscriber: SUBSCRIBER, limit: PAGE_SIZE, waitMs: WAIT_MS };
      const { completions } = await host.completions(EVERYONE, query, signal);
      const spans = completions.flatMap((each) => processSpan(each, this.settings) ?? []);
      const body = tracesBody(spans, this.resource);
      if (spans.length > 0 && (await traces.send(body, signal)) === 'later') return false;
      const numbers = completions.map(({ number }) => number);
      if (numbers.length > 0) await host.acknowledge(EVERYONE, { subscriber: SUBSCRIBER, numbers });
      return true;
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      return false;
    }
  }

  private pause(ms: number): Promise<void> {
    const { signal } = this.ending;
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.options.clock.after(ms, resolve);
      signal.addEventListener('abort', () => (cancel(), resolve()), { once: true });
    });
  }
}
