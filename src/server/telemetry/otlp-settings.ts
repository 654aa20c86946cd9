// The settings of an exporter, from the variables that OpenTelemetry's specification names. What is wrong is reported and left
// out: a server without traces is better than none.

type Signal = 'traces' | 'metrics';

export interface OtlpTarget {
  readonly signal: Signal;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly gzip: boolean;
}

export interface TelemetrySettings {
  readonly traces: OtlpTarget | undefined;
  readonly metrics: OtlpTarget | undefined;
  /** The part of the traces that begin here and are exported, from 0 to 1. */
  readonly ratio: number;
  /** Whether a trace that a caller began is exported if it says so, whatever the ratio is. */
  readonly parentDecides: boolean;
  readonly metricIntervalMs: number;
  readonly spanDelayMs: number;
  readonly resource: Readonly<Record<string, string>>;
}

type Env = Readonly<Record<string, string | undefined>>;
type Report = (problem: string) => void;

const JSON_INSTEAD =
  'Holdfast speaks http/json, which collectors take at the same address (port 4318)';

export function telemetrySettings(env: Env, report: Report): TelemetrySettings | undefined {
  if (env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true') return undefined;
  const traces = targetOf('traces', env, report);
  const metrics = targetOf('metrics', env, report);
  if (!traces && !metrics) return undefined;
  const sampler = env['OTEL_TRACES_SAMPLER'] || 'parentbased_always_on';
  return {
    traces,
    metrics,
    ratio: ratioOf(sampler, env, report),
    parentDecides: sampler.startsWith('parentbased_'),
    metricIntervalMs: milliseconds(env, 'OTEL_METRIC_EXPORT_INTERVAL', 60_000, report),
    spanDelayMs: milliseconds(env, 'OTEL_BSP_SCHEDULE_DELAY', 5000, report),
    resource: {
      ...pairs(env, 'OTEL_RESOURCE_ATTRIBUTES', report),
      ...(env['OTEL_SERVICE_NAME'] && { 'service.name': env['OTEL_SERVICE_NAME'] }),
    },
  };
}

function targetOf(signal: Signal, env: Env, report: Report): OtlpTarget | undefined {
  const upper = signal.toUpperCase();
  const exporter = env[`OTEL_${upper}_EXPORTER`] || 'otlp';
  if (exporter === 'none') return undefined;
  if (exporter !== 'otlp') {
    report(`OTEL_${upper}_EXPORTER is otlp or none, not "${exporter}": no ${signal} are exported.`);
    return undefined;
  }
  /** The variable of this signal, or the one for all. */
  const name = (last: string): string => {
    const own = `OTEL_EXPORTER_OTLP_${upper}_${last}`;
    return env[own] ? own : `OTEL_EXPORTER_OTLP_${last}`;
  };
  const url = urlOf(env, name('ENDPOINT'), signal, report);
  const protocol = env[name('PROTOCOL')] || 'http/json';
  if (url === undefined) return undefined;
  if (!['http/json', 'http/protobuf'].includes(protocol)) {
    report(`${name('PROTOCOL')} is "${protocol}": ${JSON_INSTEAD}. No ${signal} are exported.`);
    return undefined;
  }
  return {
    signal,
    url,
    headers: pairs(env, name('HEADERS'), report),
    timeoutMs: milliseconds(env, name('TIMEOUT'), 10_000, report),
    gzip: env[name('COMPRESSION')] === 'gzip',
  };
}

/** The address of one signal is used as it is; the one for all is a base. */
function urlOf(env: Env, name: string, signal: Signal, report: Report): string | undefined {
  const text = env[name];
  if (!text) return undefined;
  const isBase = name === 'OTEL_EXPORTER_OTLP_ENDPOINT';
  const full = isBase ? `${text.replace(/\/$/, '')}/v1/${signal}` : text;
  if (URL.canParse(full) && /^https?:$/.test(new URL(full).protocol)) return full;
  // Its value is not repeated: it may contain a password.
  report(`${name} must begin with http:// or https://: no ${signal} are exported.`);
  return undefined;
}

/** "a=1,b=2", percent-encoded. */
function pairs(env: Env, name: string, report: Report): Record<string, string> {
  const found: Record<string, string> = {};
  for (const pair of (env[name] ?? '').split(',').filter((each) => each.trim() !== '')) {
    const at = pair.indexOf('=');
    try {
      if (at < 1) throw new URIError('no "="');
      found[pair.slice(0, at).trim()] = decodeURIComponent(pair.slice(at + 1).trim());
    } catch {
      report(`${name} has a pair that is not name=value: it is left out.`);
    }
  }
  return found;
}

function milliseconds(env: Env, name: string, usual: number, report: Report): number {
  const text = env[name];
  if (!text) return usual;
  const ms = Number(text);
  if (Number.isFinite(ms) && ms > 0) return ms;
  report(`${name} is a number of milliseconds, not "${text}": ${usual} is used.`);
  return usual;
}

function ratioOf(sampler: string, env: Env, report: Report): number {
  const kind = sampler.replace(/^parentbased_/, '');
  if (kind === 'always_on') return 1;
  if (kind === 'always_off') return 0;
  const ratio = Number(env['OTEL_TRACES_SAMPLER_ARG'] || 1);
  if (kind === 'traceidratio' && ratio >= 0 && ratio <= 1) return ratio;
  report(
    `OTEL_TRACES_SAMPLER "${sampler}" is unknown, or its argument is: all traces are exported.`,
  );
  return 1;
}
