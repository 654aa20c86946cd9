// The SDK's way over HTTP: a server on a unix socket or a URL. A connection that breaks is made again and the question
// asked again, as long as asking twice does no harm: whoever waits notices nothing but time.

import {
  Agent,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http';
import { request as httpsRequest } from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import { errnoOf } from '../base/disk.ts';
import { randomId } from '../base/ids.ts';
import { fromErrorShape, HoldfastError, type ErrorShape } from '../protocol/errors.ts';
import type { ProcessEvent } from '../protocol/event.ts';
import type { Results } from '../protocol/host-api.ts';
import { DEFAULT_PAGE_BYTES } from '../protocol/limits.ts';
import type { Api, EventPage } from './api.ts';
import type { TerminalApi } from './terminal-api.ts';

export interface HttpTarget {
  /** http(s)://host:port */
  readonly url?: string;
  readonly socketPath?: string;
  readonly token?: string | undefined;
  /** In whose name, when the token may act for anyone. */
  readonly owner?: string | undefined;
  /** How long a server that went away is waited for. */
  readonly reconnectMs?: number;
  /** Called when nobody listens, before the next try: starts the local server. */
  readonly revive?: () => Promise<void>;
}

interface Ask {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
  /** Asking twice would not be the same as asking once. */
  readonly once?: true;
  /** The answer is no JSON. */
}

const DEFAULT_RECONNECT_MS = 30_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1000;

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
    text: ({ id, ...query }) => wire.ask({ method: 'GET', path: at(id, '/text'), query }),
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
    remove: ({ id, force }) =>
      wire.ask({ method: 'DELETE', path: at(id), query: { force }, once: true }),
    completions: (query, signal) =>
      wire.ask({ method: 'GET', path: '/v1/completions', query, signal }),
    acknowledge: (body) => wire.ask({ method: 'POST', path: '/v1/completions/acknowledge', body }),
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
    // Under a name of the caller's the same question is the same run.
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
    screenshot: (id, query) =>
      wire.bytes({ method: 'GET', path: at(id, '/screenshot'), query: { ...query } }),
    recording: (id, query) =>
      wire.bytes({ method: 'GET', path: at(id, '/recording'), query: { ...query } }),
  };
}

class HttpWire {
  private readonly target: HttpTarget;
  private readonly agent = new Agent({ keepAlive: true, maxSockets: Infinity });

  constructor(target: HttpTarget) {
    this.target = target;
  }

  /** The time limit is the caller's, whatever happens to the connection meanwhile. */
  async wait(
    params: Parameters<Api['wait']>[0],
    signal: AbortSignal | undefined,
  ): Promise<Results['wait']> {
    const until = params.timeoutMs === undefined ? undefined : performance.now() + params.timeoutMs;
    const body = (): unknown =>
      until === undefined
        ? params
        : { ...params, timeoutMs: Math.max(0, Math.round(until - performance.now())) };
    const ask: Ask = { method: 'POST', path: '/v1/wait', signal };
    return this.again(() => this.json<Results['wait']>({ ...ask, body: body() }), ask);
  }

  ask<T>(ask: Ask): Promise<T> {
    return this.again(() => this.json<T>(ask), ask);
  }

  async range(ask: Ask): Promise<Results['range']> {
    const { bytes, headers } = await this.again(async () => this.once(ask), ask);
    const number = (name: string): number => Number(headers[`holdfast-${name}`]);
    return {
      offset: number('offset'),
      bytes,
      missedBytes: number('missed-bytes'),
      totalBytes: number('total-bytes'),
      end: headers['holdfast-end'] === 'true',
    };
  }

  bytes(ask: Ask): Promise<Buffer> {
    return this.again(async () => (await this.once(ask)).bytes, ask);
  }

  async close(): Promise<void> {
    this.agent.destroy();
  }

  private async again<T>(question: () => Promise<T>, ask: Ask): Promise<T> {
    const giveUpAt = performance.now() + (this.target.reconnectMs ?? DEFAULT_RECONNECT_MS);
    for (let wait = FIRST_PAUSE_MS; ; wait = Math.min(wait * 2, LONGEST_PAUSE_MS)) {
      try {
        return await question();
      } catch (error) {
        if (error instanceof HoldfastError) throw error;
        const errno = errnoOf(error) ?? '';
        const never = errno === 'ECONNREFUSED' || errno === 'ENOENT';
        if (ask.signal?.aborted) throw new HoldfastError('aborted', 'The caller stopped waiting.');
        if ((ask.once && !never) || performance.now() > giveUpAt) throw unreachable(error);
        if (never) await this.target.revive?.();
        await pause(wait, undefined, { signal: ask.signal }).catch(() => undefined);
      }
    }
  }

  private async json<T>(ask: Ask): Promise<T> {
    const { bytes } = await this.once(ask);
    return parse(bytes, 200) as T;
  }

  private async once(ask: Ask): Promise<{ bytes: Buffer; headers: IncomingHttpHeaders }> {
    const response = await this.send(ask);
    const chunks: Buffer[] = [];
    for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
    const bytes = Buffer.concat(chunks);
    const { statusCode: status = 0, headers } = response;
    if (status === 200) return { bytes, headers };
    throw fromErrorShape((parse(bytes, status) as { error: ErrorShape }).error);
  }

  private send(ask: Ask): Promise<IncomingMessage> {
    const { url, socketPath, token, owner } = this.target;
    const base = new URL(url ?? 'http://localhost');
    const body = ask.body === undefined ? undefined : Buffer.from(JSON.stringify(ask.body));
    const options: RequestOptions = {
      method: ask.method,
      path: ask.path + queryText(ask.query),
      headers: {
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
        ...(owner !== undefined && { 'Holdfast-Owner': owner }),
        ...(body && { 'Content-Type': 'application/json', 'Content-Length': body.length }),
      },
      ...(socketPath === undefined ? { host: base.hostname, port: base.port } : { socketPath }),
      ...(ask.signal && { signal: ask.signal }),
    };
    return new Promise((resolve, reject) => {
      const secure = base.protocol === 'https:';
      const request = secure
        ? httpsRequest(options, resolve)
        : httpRequest({ ...options, agent: this.agent }, resolve);
      request.once('error', reject);
      request.setNoDelay(true);
      request.end(body);
    });
  }
}

function parse(bytes: Buffer, status: number): unknown {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    if (status === 200 || (typeof value === 'object' && value !== null && 'error' in value))
      return value;
  } catch {
    // Falls through: whatever answered is not Holdfast.
  }
  throw new HoldfastError(
    'keeper_unreachable',
    `The server answered ${status} with something that is not ours.`,
  );
}

function queryText(query: Ask['query'] = {}): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) given.set(name, String(value));
  }
  return given.size === 0 ? '' : `?${given.toString()}`;
}

function unreachable(error: unknown): HoldfastError {
  const reason = error instanceof Error ? error.message : String(error);
  return new HoldfastError('keeper_unreachable', `The server cannot be reached: ${reason}`);
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
