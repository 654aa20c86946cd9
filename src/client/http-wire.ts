// HTTP requests to one server, on a unix socket or a URL. After a broken connection a request is retried, if repeating
// it is safe, so that a waiting caller notices nothing but time.

import {
  Agent,
  request as httpRequest,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http';
import { request as httpsRequest } from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import type { CancelSignal } from '../base/cancel-signal.ts';
import { systemClock } from '../base/clock.ts';
import { errnoOf } from '../base/disk.ts';
import { PeerWatch, whyStill } from '../system/peer-watch.ts';
import { abortedError, realSignal } from '../protocol/cancellation.ts';
import { fromErrorShape, HoldfastError, type ErrorShape } from '../protocol/errors.ts';
import type { Results } from '../protocol/host-api.ts';
import type { Api } from './api.ts';
import { traceHeaders } from './trace-headers.ts';

export interface HttpTarget {
  /** http(s)://host:port; several are gateways of one fleet: while one does not answer, the next is asked. */
  readonly url?: string | readonly string[] | undefined;
  readonly socketPath?: string;
  readonly token?: string | undefined;
  /** The owner to act as, if the token allows any. */
  readonly owner?: string | undefined;
  /** How long to wait for a server that went away. */
  readonly reconnectMs?: number;
  /** The pid of a local server, if known. */
  readonly pid?: () => number | undefined;
  /** Called before a retry if nobody listens: starts the local server. */
  readonly revive?: () => Promise<void>;
}

interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  readonly signal?: CancelSignal | undefined;
  /** Repeating the request is not safe. */
  readonly once?: true;
}

const DEFAULT_RECONNECT_MS = 30_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1000;
/** A ping is a request, so a quiet server is pinged later than a keeper. */
const PING_AFTER_TICKS = 4;

/** A request without an answer so far. */
interface Unanswered {
  readonly request: ClientRequest;
  /** The keeper may answer this request, even if the server is stopped. */
  readonly handedOver: boolean;
  /** The server has answered a ping since. */
  answeredPing: boolean;
}

export class HttpWire {
  private readonly target: HttpTarget;
  private readonly urls: readonly string[];
  /** Of `urls`, the one that is asked. */
  private turn = 0;
  private readonly agent = new Agent({ keepAlive: true, maxSockets: Infinity });
  private readonly unanswered = new Set<Unanswered>();
  private readonly watch: PeerWatch;

  constructor(target: HttpTarget) {
    this.target = target;
    this.urls = [target.url ?? []].flat();
    this.watch = new PeerWatch({
      clock: systemClock,
      owes: () => this.unanswered.size > 0,
      ping: () => this.ping(),
      pingAfterTicks: PING_AFTER_TICKS,
      pid: () => this.target.pid?.(),
      silent: () => this.failSilent(),
    });
  }

  /** The timeout is the caller's, whatever happens to the connection meanwhile. */
  async wait(
    params: Parameters<Api['wait']>[0],
    signal: AbortSignal | undefined,
  ): Promise<Results['wait']> {
    const until = params.timeoutMs === undefined ? undefined : performance.now() + params.timeoutMs;
    const body = (): unknown =>
      until === undefined
        ? params
        : { ...params, timeoutMs: Math.max(0, Math.round(until - performance.now())) };
    const ask: HttpRequest = { method: 'POST', path: '/v1/wait', signal };
    return this.retry(() => this.json<Results['wait']>({ ...ask, body: body() }), ask);
  }

  ask<T>(ask: HttpRequest): Promise<T> {
    return this.retry(() => this.json<T>(ask), ask);
  }

  async range(ask: HttpRequest): Promise<Results['range']> {
    const { bytes, headers } = await this.retry(async () => this.sendOnce(ask), ask);
    const number = (name: string): number => Number(headers[`holdfast-${name}`]);
    return {
      offset: number('offset'),
      bytes,
      missedBytes: number('missed-bytes'),
      totalBytes: number('total-bytes'),
      end: headers['holdfast-end'] === 'true',
    };
  }

  download(ask: HttpRequest): Promise<{ bytes: Buffer; headers: IncomingHttpHeaders }> {
    return this.retry(() => this.sendOnce(ask), ask);
  }

  async bytes(ask: HttpRequest): Promise<Buffer> {
    return (await this.download(ask)).bytes;
  }

  async close(): Promise<void> {
    this.watch.close();
    this.agent.destroy();
  }

  /** Any answer will do, even an error. It shows that the server has read all earlier requests. */
  private ping(): void {
    const before = [...this.unanswered];
    const request = this.request({ method: 'GET', path: '/readyz' }, (response) => {
      response.resume();
      this.watch.heard();
      for (const each of before) each.answeredPing = true;
    });
    // The pending requests get the same error.
    request.on('error', () => undefined);
    request.end();
  }

  private unreachable(error: unknown): HoldfastError {
    const reason = error instanceof Error ? error.message : String(error);
    const problem = `The server cannot be reached: ${reason}`;
    const where = this.urls.join(' or ');
    // A remote server cannot be inspected from here.
    const remedy = `See that "holdfast serve" runs at ${where}, and that nothing is in between.`;
    return new HoldfastError('keeper_unreachable', problem, where === '' ? {} : { remedy });
  }

  private failSilent(): void {
    const pid = this.target.pid?.();
    const why = whyStill(pid);
    const who = pid === undefined ? 'The server' : `The server (pid ${pid})`;
    const problem = `${who} does not answer${why === undefined ? '' : `: ${why}`}.`;
    for (const { request, handedOver, answeredPing } of this.unanswered)
      if (!handedOver || !answeredPing)
        request.destroy(new HoldfastError('not_answering', problem));
  }

  private async retry<T>(attempt: () => Promise<T>, ask: HttpRequest): Promise<T> {
    const giveUpAt = performance.now() + (this.target.reconnectMs ?? DEFAULT_RECONNECT_MS);
    for (let wait = FIRST_PAUSE_MS; ; wait = Math.min(wait * 2, LONGEST_PAUSE_MS)) {
      const { turn } = this;
      try {
        return await attempt();
      } catch (error) {
        if (error instanceof HoldfastError && !this.mayAskAnother(error, ask, giveUpAt))
          throw error;
        // Calls that fail together turn once.
        if (this.turn === turn) this.turn += 1;
        const errno = errnoOf(error) ?? '';
        const refused = errno === 'ECONNREFUSED' || errno === 'ENOENT';
        if (ask.signal?.aborted) throw abortedError();
        if ((ask.once && !refused) || performance.now() > giveUpAt) throw this.unreachable(error);
        if (refused) await this.target.revive?.();
        await pause(wait, undefined, { signal: ask.signal && realSignal(ask.signal) }).catch(
          () => undefined,
        );
      }
    }
  }

  /** The server says that it cannot help now, and another one may. */
  private mayAskAnother({ code }: HoldfastError, { once }: HttpRequest, giveUpAt: number): boolean {
    const isAway = ['fabric_degraded', 'host_closed', 'not_answering'].includes(code);
    return this.urls.length > 1 && isAway && !once && performance.now() <= giveUpAt;
  }

  private async json<T>(ask: HttpRequest): Promise<T> {
    const { bytes } = await this.sendOnce(ask);
    return parse(bytes, 200) as T;
  }

  private async sendOnce(
    ask: HttpRequest,
  ): Promise<{ bytes: Buffer; headers: IncomingHttpHeaders }> {
    const response = await this.send(ask);
    const chunks: Buffer[] = [];
    for await (const chunk of response as AsyncIterable<Buffer>) {
      this.watch.heard();
      chunks.push(chunk);
    }
    const bytes = Buffer.concat(chunks);
    const { statusCode: status = 0, headers } = response;
    if (status === 200) return { bytes, headers };
    throw fromErrorShape((parse(bytes, status) as { error: ErrorShape }).error);
  }

  private async send(ask: HttpRequest): Promise<IncomingMessage> {
    const body = ask.body === undefined ? undefined : Buffer.from(JSON.stringify(ask.body));
    const tracing = traceHeaders();
    const trace = tracing && (await tracing);
    return new Promise((resolve, reject) => {
      const request = this.request(ask, resolve, body, trace);
      const entry = { request, handedOver: ask.path === '/v1/wait', answeredPing: false };
      this.unanswered.add(entry);
      this.watch.expect();
      request.once('response', () => this.watch.heard());
      request.once('close', () => this.unanswered.delete(entry));
      request.once('error', reject);
      request.end(body);
    });
  }

  private request(
    ask: HttpRequest,
    answered: (response: IncomingMessage) => void,
    body?: Buffer,
    trace?: Readonly<Record<string, string>>,
  ): ClientRequest {
    const { socketPath, token, owner } = this.target;
    const base = new URL(this.urls[this.turn % this.urls.length] ?? 'http://localhost');
    const options: RequestOptions = {
      method: ask.method,
      path: base.pathname.replace(/\/$/, '') + ask.path + queryText(ask.query),
      headers: {
        ...trace,
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
        ...(owner !== undefined && { 'Holdfast-Owner': owner }),
        ...(body && { 'Content-Type': 'application/json', 'Content-Length': body.length }),
      },
      ...(socketPath === undefined ? { host: base.hostname, port: base.port } : { socketPath }),
      ...(ask.signal && { signal: realSignal(ask.signal) }),
    };
    const secure = base.protocol === 'https:';
    const request = secure
      ? httpsRequest(options, answered)
      : httpRequest({ ...options, agent: this.agent }, answered);
    request.setNoDelay(true);
    return request;
  }
}

function parse(bytes: Buffer, status: number): unknown {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    if (status === 200 || (typeof value === 'object' && value !== null && 'error' in value))
      return value;
  } catch {
    // Falls through: the answer does not come from Holdfast.
  }
  throw new HoldfastError(
    'keeper_unreachable',
    `The server answered ${status} with something that is not ours.`,
  );
}

function queryText(query: HttpRequest['query'] = {}): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) given.set(name, String(value));
  }
  return given.size === 0 ? '' : `?${given.toString()}`;
}
