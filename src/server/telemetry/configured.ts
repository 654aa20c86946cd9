// Whether an OpenTelemetry exporter is configured. Looked at before anything of it is loaded.

export function isTelemetryConfigured(env: NodeJS.ProcessEnv): boolean {
  return ['', 'TRACES_', 'METRICS_'].some((signal) => env[`OTEL_EXPORTER_OTLP_${signal}ENDPOINT`]);
}
