import { describe, expect, it } from 'vitest';
import { telemetrySettings } from './otlp-settings.ts';

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };

function read(env: Record<string, string>) {
  const reports: string[] = [];
  const settings = telemetrySettings(env, (problem) => reports.push(problem));
  return { settings, reports };
}

describe('the settings of an exporter', () => {
  it('[OT5] are the variables of the specification; those of one signal go first', () => {
    const { settings, reports } = read({
      ...ENDPOINT,
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://traces.example/in',
      OTEL_EXPORTER_OTLP_HEADERS: 'a=1, b=%20x=y%20',
      OTEL_EXPORTER_OTLP_METRICS_HEADERS: 'c=3',
      OTEL_EXPORTER_OTLP_METRICS_TIMEOUT: '500',
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.25',
      OTEL_RESOURCE_ATTRIBUTES: 'service.name=a,region=b',
      OTEL_SERVICE_NAME: 'agents',
    });
    expect(reports).toEqual([]);
    expect(settings).toMatchObject({
      traces: {
        url: 'https://traces.example/in',
        headers: { a: '1', b: ' x=y ' },
        timeoutMs: 10_000,
      },
      metrics: { url: 'http://127.0.0.1:4318/v1/metrics', headers: { c: '3' }, timeoutMs: 500 },
      ratio: 0.25,
      parentDecides: true,
      resource: { 'service.name': 'agents', region: 'b' },
    });
    expect(read({ ...ENDPOINT, OTEL_SDK_DISABLED: 'true' }).settings).toBeUndefined();
    expect(read({}).settings).toBeUndefined();
  });

  it('[OT5] what makes no sense is reported without what may be a secret', () => {
    for (const [env, problem] of [
      [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'ftp://user:canary@host' }, 'must begin with http://'],
      [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'Holdfast speaks http/json'],
      [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'zipkin' }, 'otlp or none'],
      [{ ...ENDPOINT, OTEL_TRACES_SAMPLER: 'dice' }, 'all traces are exported'],
      [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS: 'canary' }, 'name=value'],
      [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS: 'a=%canary' }, 'name=value'],
      [{ ...ENDPOINT, OTEL_METRIC_EXPORT_INTERVAL: 'often' }, '60000 is used'],
    ] as const) {
      const { reports } = read(env);
      expect(reports.join()).toContain(problem);
      expect(reports.join()).not.toContain('canary');
    }
  });
});
