// http/request: HTTP calls that a codex client makes from the machine of its commands. Nothing is added to a request,
// no token and no proxy. The response comes back at once, or in pieces as notifications.

import { Agent, type IncomingMessage } from 'node:http';
import { Agent as SecureAgent } from 'node:https';
import { failure, fetchResponse, type Agents } from './hops.ts';
import { readRequest, type HttpRequestSpec, type Header } from './params.ts';
import { invalid } from '../params.ts';
import {
  RpcError,
  rpcCodes,
  type CodexSession,
  type CodexSurroundings,
  type MethodTable,
} from '../rpc.ts';

/** As base64, what the real client accepts in one message. */
const MAX_BODY_BYTES = 44 * 1024 * 1024;
const MAX_DELTA_BYTES = 1024 * 1024;
const MAX_ACTIVE = 128;
const INCOMPLETE = 'error decoding response body';

export function httpMethods({ env }: CodexSurroundings): MethodTable {
  const clients = new WeakMap<CodexSession, HttpClient>();
  return {
    'http/request': async (params, session) => {
      if (session.policy()?.sandbox?.net === 'none')
        throw new RpcError(rpcCodes.failed, 'the token of this client allows no network');
      let client = clients.get(session);
      if (!client) {
        client = new HttpClient(session);
        clients.set(session, client);
      }
      return client.request(readRequest(params, env, session.admin));
    },
  };
}

/** The requests of one connection. */
class HttpClient {
  private readonly session: CodexSession;
  private readonly agents: Agents = {
    http: new Agent({ keepAlive: true }),
    https: new SecureAgent({ keepAlive: true }),
  };
  /** Ids of bodies that are being streamed. */
  private readonly streams = new Set<string>();
  private active = 0;

  constructor(session: CodexSession) {
    this.session = session;
    session.onClose(() => {
      this.agents.http.destroy();
      this.agents.https.destroy();
    });
  }

  async request(spec: HttpRequestSpec): Promise<unknown> {
    const { requestId, streamed } = spec;
    if (streamed && this.streams.has(requestId))
      throw invalid(`http/request streamResponse requestId \`${requestId}\` is already active`);
    if (this.active >= MAX_ACTIVE)
      throw failure(`${MAX_ACTIVE} requests of this connection are active already`);
    this.active += 1;
    if (streamed) this.streams.add(requestId);
    const release = (): void => {
      this.active -= 1;
      if (streamed) this.streams.delete(requestId);
    };
    const deadline = new Deadline(spec.timeoutMs, this.session.gone);
    let streaming = false;
    try {
      const response = await fetchResponse(spec, this.agents, deadline.signal);
      const answer = { status: response.statusCode, headers: headersOf(response) };
      if (!streamed) return { ...answer, bodyBase64: await readBody(response, deadline.signal) };
      streaming = true;
      // After the answer: the client does not know the stream before.
      setImmediate(() => {
        void this.stream(requestId, response).finally(() => {
          deadline.end();
          release();
        });
      });
      return { ...answer, bodyBase64: '' };
    } finally {
      if (!streaming) {
        deadline.end();
        release();
      }
    }
  }

  private async stream(requestId: string, response: IncomingMessage): Promise<void> {
    let seq = 0;
    const notify = (delta: Buffer, done: boolean, error: string | null): void => {
      seq += 1;
      const deltaBase64 = delta.toString('base64');
      this.session.notify('http/request/bodyDelta', { requestId, seq, deltaBase64, done, error });
    };
    let problem: string | null = null;
    try {
      for await (const chunk of response as AsyncIterable<Buffer>) {
        for (let at = 0; at < chunk.length; at += MAX_DELTA_BYTES)
          notify(chunk.subarray(at, at + MAX_DELTA_BYTES), false, null);
        await this.session.backpressure();
        if (this.session.gone.aborted) return;
      }
      if (!response.complete) problem = INCOMPLETE;
    } catch {
      problem = INCOMPLETE;
    }
    if (!this.session.gone.aborted) notify(Buffer.alloc(0), true, problem);
  }
}

/** Aborts a request at its timeout or when its connection ends. */
class Deadline {
  readonly signal: AbortSignal;
  private readonly controller = new AbortController();
  private readonly timer: NodeJS.Timeout | undefined;
  private readonly gone: AbortSignal;
  private readonly abort = (): void => this.controller.abort();

  constructor(timeoutMs: number | undefined, gone: AbortSignal) {
    this.signal = this.controller.signal;
    this.gone = gone;
    gone.addEventListener('abort', this.abort, { once: true });
    if (gone.aborted || timeoutMs === 0) this.abort();
    // Node fires a longer timer at once.
    if (timeoutMs !== undefined && timeoutMs < 2 ** 31) {
      this.timer = setTimeout(this.abort, timeoutMs);
      this.timer.unref();
    }
  }

  end(): void {
    clearTimeout(this.timer);
    this.gone.removeEventListener('abort', this.abort);
  }
}

async function readBody(response: IncomingMessage, signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > MAX_BODY_BYTES) break;
      chunks.push(chunk);
    }
  } catch {
    throw incompleteBody();
  }
  if (size > MAX_BODY_BYTES) {
    response.destroy();
    throw failure(`the response body is larger than ${MAX_BODY_BYTES} bytes; stream it`);
  }
  if (!response.complete || signal.aborted) throw incompleteBody();
  return Buffer.concat(chunks, size).toString('base64');
}

function incompleteBody(): RpcError {
  return new RpcError(rpcCodes.failed, `failed to read http/request response body: ${INCOMPLETE}`);
}

/** In order, repeated ones kept; values that are not ASCII text are left out, as codex's server does. */
function headersOf({ rawHeaders }: IncomingMessage): Header[] {
  const headers: Header[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const [name = '', value = ''] = rawHeaders.slice(index, index + 2);
    if (/^[\t\x20-\x7e]*$/.test(value)) headers.push({ name: name.toLowerCase(), value });
  }
  return headers;
}
