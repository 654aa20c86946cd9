// The SDK's operations over HTTP.

import { randomId } from '../base/ids.ts';
import type { ProcessEvent } from '../protocol/event.ts';
import { DEFAULT_PAGE_BYTES } from '../protocol/limits.ts';
import type { Api, EventPage } from './api.ts';
import { HttpWire, type HttpTarget } from './http-wire.ts';
import { MISSING_HEADER, type TerminalApi } from './terminal-api.ts';

export function httpApi(target: HttpTarget): Api {
  const wire = new HttpWire(target);
  const at = (id: string, rest = ''): string => `/v1/processes/${encodeURIComponent(id)}${rest}`;
  return {
    start: (spec, signal) =>
      wire.ask({
        method: 'POST',
        path: '/v1/processes',
        body: spec,
        signal,
        ...(spec.key === undefined && { once: true }),
      }),
    list: (filter) => wire.ask({ method: 'GET', path: '/v1/processes', query: filter }),
    get: (id) => wire.ask({ method: 'GET', path: at(id) }),
    events: async ({ id, ...query }, signal) =>
      decodePage(await wire.ask({ method: 'GET', path: at(id, '/events'), query, signal })),
    range: ({ id, offset, maxBytes = DEFAULT_PAGE_BYTES }, signal) =>
      wire.range({
        method: 'GET',
        path: at(id, '/bytes'),
        query: { offset, maxBytes },
        signal,
      }),
    text: ({ id, ...query }, signal) =>
      wire.ask({ method: 'GET', path: at(id, '/text'), query, signal }),
    search: ({ id, ...query }, signal) =>
      wire.ask({ method: 'GET', path: at(id, '/search'), query, signal }),
    write: ({ id, data = Buffer.alloc(0), eof = false, writeId = randomId() }) =>
      wire.ask({
        method: 'POST',
        path: at(id, '/stdin'),
        body: { base64: Buffer.from(data).toString('base64'), eof, writeId },
      }),
    resize: ({ id, size }) => wire.ask({ method: 'POST', path: at(id, '/resize'), body: { size } }),
    signal: ({ id, ...body }) =>
      wire.ask({ method: 'POST', path: at(id, '/signal'), body, once: true }),
    wait: (params, signal) => wire.wait(params, signal),
    ports: (id) => wire.ask({ method: 'GET', path: at(id, '/ports') }),
    tree: (id) => wire.ask({ method: 'GET', path: at(id, '/tree') }),
    remove: ({ id, force }) =>
      wire.ask({ method: 'DELETE', path: at(id), query: { force }, once: true }),
    completions: (query, signal) =>
      wire.ask({ method: 'GET', path: '/v1/completions', query, signal }),
    acknowledge: (body) => wire.ask({ method: 'POST', path: '/v1/completions/acknowledge', body }),
    attention: (query, signal) => wire.ask({ method: 'GET', path: '/v1/attention', query, signal }),
    dismiss: (id) => wire.ask({ method: 'POST', path: at(id, '/dismiss'), body: {} }),
    holdLease: ({ name, ttlMs }, signal) => {
      const path = `/v1/leases/${encodeURIComponent(name)}`;
      if (ttlMs === 0) return wire.ask({ method: 'DELETE', path, signal });
      return wire.ask({ method: 'POST', path, body: { ttlMs }, signal });
    },
    health: () => wire.ask({ method: 'GET', path: '/v1/health' }),
    terminals: httpTerminals(wire),
    close: () => wire.close(),
  };
}

function httpTerminals(wire: HttpWire): TerminalApi {
  const at = (id: string, rest = ''): string => `/v1/terminals/${encodeURIComponent(id)}${rest}`;
  return {
    open: (body) =>
      wire.ask({
        method: 'POST',
        path: '/v1/terminals',
        body,
        ...(body.key === undefined && { once: true }),
      }),
    // With a name from the caller, a repeated request is the same run.
    run: ({ id, ...body }, signal) =>
      wire.ask({
        method: 'POST',
        path: at(id, '/run'),
        body,
        signal,
        ...(body.run === undefined && { once: true }),
      }),
    input: (id, body) =>
      wire.ask({ method: 'POST', path: at(id, '/input'), body: { writeId: randomId(), ...body } }),
    mark: ({ id, ...body }) =>
      wire.ask({ method: 'POST', path: at(id, '/mark'), body, once: true }),
    waitForScreen: (id, body, signal) =>
      wire.ask({ method: 'POST', path: at(id, '/wait'), body, signal }),
    close: (id) => wire.ask({ method: 'DELETE', path: at(id), once: true }),
    snapshot: (id, query) =>
      wire.ask({ method: 'GET', path: at(id, '/snapshot'), query: { format: 'text', ...query } }),
    screenshot: async (id, query) => {
      const ask = { method: 'GET', path: at(id, '/screenshot'), query: { ...query } } as const;
      const { bytes, headers } = await wire.download(ask);
      return { bytes, missing: Number(headers[MISSING_HEADER.toLowerCase()] ?? 0) };
    },
    recording: (id, query) =>
      wire.bytes({ method: 'GET', path: at(id, '/recording'), query: { ...query } }),
  };
}

type WireEvent = ProcessEvent & { readonly text?: string; readonly base64?: string };

function decodePage(page: EventPage): EventPage {
  const events = (page.events as readonly WireEvent[]).map((event): ProcessEvent => {
    if (event.kind !== 'output') return event;
    const { text, base64, ...rest } = event;
    return {
      ...rest,
      data: base64 === undefined ? Buffer.from(text ?? '') : Buffer.from(base64, 'base64'),
    };
  });
  return { ...page, events };
}
