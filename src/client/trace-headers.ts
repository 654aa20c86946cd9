// The trace that the calling program is in, for requests to the server: so that a process becomes part of its caller's trace.
// OpenTelemetry's API is asked only where the program has set it up.

/** Where OpenTelemetry's API keeps what a program has registered. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1');

/** Undefined where there is no OpenTelemetry, which costs one lookup. */
export function traceHeaders(): Promise<Record<string, string>> | undefined {
  return REGISTERED in globalThis ? activeTrace() : undefined;
}

async function activeTrace(): Promise<Record<string, string>> {
  const headers: Record<string, string> = {};
  try {
    const { context, propagation } = await import('@opentelemetry/api');
    propagation.inject(context.active(), headers);
  } catch {
    // The program has a copy of the API that we cannot find: its requests are in no trace.
  }
  return headers;
}
