// Traces and metrics, as a collector gets them over OTLP.

import { spawnSync } from 'node:child_process';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { context, propagation } from '@opentelemetry/api';
import { describe, expect, it } from 'vitest';
import { connect } from '../../src/index.ts';
import { serve, type Served } from '../support/coder-client.ts';
import { onCleanup, program, stopKeeper, temporaryFolder } from '../support/hosts.ts';
import { NativeClient } from '../support/native-client.ts';

interface SpanData {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { key: string; value: Record<string, unknown> }[];
  readonly status?: { code: number; message: string };
}

interface MetricData {
  readonly name: string;
  readonly unit: string;
  readonly histogram?: { dataPoints: { count: string; bucketCounts: string[]; sum: number }[] };
  readonly gauge?: { dataPoints: { asDouble: number }[] };
}

/** A collector that keeps what it gets, or refuses it. */
class Collector {
  readonly requests: { path: string; headers: IncomingHttpHeaders; text: string }[] = [];
  status = 200;
  private readonly waiting = new Set<() => void>();
  private readonly server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { url: path = '', headers } = request;
      const bytes = Buffer.concat(chunks);
      const isZipped = headers['content-encoding'] === 'gzip';
      const text = (isZipped ? gunzipSync(bytes) : bytes).toString();
      response.writeHead(this.status).end('{}');
      this.requests.push({ path, headers, text });
      for (const wake of this.waiting) wake();
    });
  });

  async open(): Promise<string> {
    await new Promise<void>((resolve) => void this.server.listen(0, '127.0.0.1', resolve));
    onCleanup(() => {
      this.server.closeAllConnections();
      this.server.close();
    });
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  get spans(): SpanData[] {
    return this.bodies('/v1/traces').flatMap((body) =>
      (body as { resourceSpans: { scopeSpans: { spans: SpanData[] }[] }[] }).resourceSpans.flatMap(
        ({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans),
      ),
    );
  }

  get metrics(): MetricData[] {
    return this.bodies('/v1/metrics').flatMap((body) =>
      (
        body as { resourceMetrics: { scopeMetrics: { metrics: MetricData[] }[] }[] }
      ).resourceMetrics.flatMap(({ scopeMetrics }) =>
        scopeMetrics.flatMap(({ metrics }) => metrics),
      ),
    );
  }

  async until(isThere: () => boolean): Promise<void> {
    while (!isThere()) {
      await new Promise<void>((resolve) => {
        this.waiting.add(resolve);
      });
      this.waiting.clear();
    }
  }

  private bodies(path: string): unknown[] {
    return this.requests
      .filter((each) => each.path === path)
      .map(({ text }) => JSON.parse(text) as unknown);
  }
}

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';
const TRACE_PARENT = `00-${TRACE}-${PARENT}-01`;

async function exporting(env: NodeJS.ProcessEnv, home?: string): Promise<Served> {
  const made = await serve({
    env: { ...process.env, OTEL_BSP_SCHEDULE_DELAY: '1', ...env },
    ...(home !== undefined && { home }),
  });
  onCleanup(() => made.stop());
  return made;
}

function attributesOf({ attributes }: SpanData): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}

const isProcess = ({ name }: SpanData): boolean => name.startsWith('process');

describe('telemetry', () => {
  it('[OT1] a process is in the trace of the request that started it, which is in the trace of its caller; no command, no output', async () => {
    const collector = new Collector();
    const served = await exporting({
      OTEL_EXPORTER_OTLP_ENDPOINT: `${await collector.open()}/`,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=a%20b',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test',
      OTEL_METRICS_EXPORTER: 'none',
    });
    const client = NativeClient.of(served).with({ traceparent: TRACE_PARENT });
    const command = 'echo canary-output; exit 3 # canary-command';
    const { id } = await client.start({ command, name: 'seven', env: { X: 'canary-env' } });
    await collector.until(
      () => collector.spans.some(isProcess) && collector.spans.some((span) => !isProcess(span)),
    );
    const process = collector.spans.find(isProcess);
    const request = collector.spans.find(({ name }) => name === 'POST /v1/processes');
    expect(request).toMatchObject({ traceId: TRACE, parentSpanId: PARENT, kind: 2 });
    expect(process).toMatchObject({
      traceId: TRACE,
      parentSpanId: request?.spanId,
      name: 'process seven',
      kind: 1,
      status: { code: 2, message: 'exit code 3' },
    });
    expect(process && attributesOf(process)).toMatchObject({
      'holdfast.process.id': id,
      'holdfast.owner': 'api',
      'holdfast.outcome': 'exit',
      'process.exit.code': '3',
    });
    expect(BigInt(process?.endTimeUnixNano ?? 0)).toBeGreaterThan(
      BigInt(process?.startTimeUnixNano ?? 0),
    );
    const [first] = collector.requests;
    expect(first?.headers).toMatchObject({
      'content-type': 'application/json',
      'x-tenant': 'a b',
    });
    expect(first?.text).toContain('"deployment.environment"');
    const all = collector.requests.map(({ text }) => text).join('');
    expect(all).not.toMatch(/canary/);
    expect(collector.metrics).toEqual([]);
  });

  it('[OT1] a trace that its caller does not record is not exported, and which trace a start is in does not change its key', async () => {
    const collector = new Collector();
    const served = await exporting({ OTEL_EXPORTER_OTLP_ENDPOINT: await collector.open() });
    const start = { command: 'true', key: 'once' };
    const unrecorded = NativeClient.of(served).with({
      traceparent: TRACE_PARENT.replace(/1$/, '0'),
    });
    const first = await unrecorded.post('/v1/processes', start);
    const again = await NativeClient.of(served).post('/v1/processes', start);
    expect([first.status, again.status]).toEqual([200, 200]);
    expect(again.json).toMatchObject({ attached: true });
    const { id } = await NativeClient.of(served).start({ command: 'true', waitMs: 60_000 });
    await collector.until(() => collector.spans.some(isProcess));
    expect(collector.spans.filter(isProcess).map(attributesOf)).toMatchObject([
      { 'holdfast.process.id': id },
    ]);
    expect(collector.spans.map(({ traceId }) => traceId)).not.toContain(TRACE);
  });

  it('[OT2] a collector that is away, and a server that is replaced meanwhile, lose no span of a process', async () => {
    const collector = new Collector();
    collector.status = 503;
    const env = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${await collector.open()}/v1/traces` };
    const home = temporaryFolder();
    onCleanup(() => stopKeeper(home));
    const first = await exporting(env, home);
    const { id } = await NativeClient.of(first).start({ command: 'true' });
    await collector.until(() => collector.spans.some(isProcess));
    const [refused] = collector.spans.filter(isProcess);
    await first.server.close();
    expect(first.reports.join()).toContain('the collector does not take traces: it answered 503.');
    collector.requests.length = 0;
    collector.status = 200;
    await exporting(env, home);
    await collector.until(() => collector.spans.some(isProcess));
    const [taken] = collector.spans.filter(isProcess);
    expect(taken && attributesOf(taken)['holdfast.process.id']).toBe(id);
    expect([taken?.traceId, taken?.spanId]).toEqual([refused?.traceId, refused?.spanId]);
  });

  it('[OT3] the figures of /metrics are exported with the same names, histograms included', async () => {
    const collector = new Collector();
    const served = await exporting({
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${await collector.open()}/v1/metrics`,
      OTEL_METRIC_EXPORT_INTERVAL: '1',
    });
    await NativeClient.of(served).start({ command: 'true', waitMs: 60_000 });
    const starts = (): MetricData | undefined =>
      collector.metrics.findLast(({ name }) => name === 'holdfast_start_duration_seconds');
    await collector.until(() => starts()?.histogram?.dataPoints[0]?.count === '1');
    const point = starts()?.histogram?.dataPoints[0];
    expect(point?.bucketCounts.map(Number).reduce((all, each) => all + each)).toBe(1);
    expect(point?.sum).toBeGreaterThan(0);
    expect(starts()?.unit).toBe('s');
    const disk = collector.metrics.find(({ name }) => name === 'holdfast_disk_free_bytes');
    expect(disk).toMatchObject({ unit: 'By', gauge: { dataPoints: [{}] } });
    expect(collector.spans).toEqual([]);
  });

  it('[OT4] without an exporter nothing of it is loaded', () => {
    const run = (env: NodeJS.ProcessEnv): { telemetry: number; scripts: number } => {
      const { stdout, stderr } = spawnSync(
        process.execPath,
        [program('loaded-scripts.mjs'), temporaryFolder()],
        { env: { ...process.env, ...env }, encoding: 'utf8' },
      );
      if (stdout === '') throw new Error(stderr);
      return JSON.parse(stdout) as { telemetry: number; scripts: number };
    };
    const off = run({});
    expect(off.scripts).toBeGreaterThan(50);
    expect(off.telemetry).toBe(0);
    expect(run({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' }).telemetry).toBeGreaterThan(3);
  });

  it('[OT5] with settings that make no sense the server serves, and says what is wrong', async () => {
    const served = await exporting({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    });
    expect(served.reports.join()).toContain('Holdfast speaks http/json');
    expect((await NativeClient.of(served).get('/v1/health')).status).toBe(200);
  });

  it("[OT6] a program that has set OpenTelemetry's API up has its processes in its own trace", async () => {
    const collector = new Collector();
    const served = await exporting({ OTEL_EXPORTER_OTLP_ENDPOINT: await collector.open() });
    const { server, token } = served;
    propagation.setGlobalPropagator({
      inject: (_context, carrier, setter) => setter.set(carrier, 'traceparent', TRACE_PARENT),
      extract: (from) => from,
      fields: () => ['traceparent'],
    });
    onCleanup(() => propagation.disable());
    expect(context.active()).toBeDefined();
    const holdfast = await connect({ url: server.url, token });
    const { exitCode } = await holdfast.run('exit 3');
    await holdfast.close();
    expect(exitCode).toBe(3);
    await collector.until(() => collector.spans.some(isProcess));
    expect(collector.spans.find(isProcess)?.traceId).toBe(TRACE);
  });
});
