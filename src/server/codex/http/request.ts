// http/request: HTTP calls that a codex client makes from where its commands run. Nothing of ours is added to a request,
// no token and no proxy; what was answered comes back at once, or piece by piece in notifications.

import { Agent, type IncomingMessage } from 'node:http';
import { Agent as SecureAgent } from 'node:https';
import { failure, responseTo, type Agents } from './hops.ts';
import { readRequest, type Asked, type Header } from './params.ts';
import { invalid } from '../params.ts';
import {
  RpcError,
  rpcCodes,
  type CodexSession,
  type CodexSurroundings,
  type MethodTable,
} from '../rpc.ts';

/** What the real client takes in one message, in base64. */
const MAX_BODY_BYTES = 44 * 1024 * 1024;
const MAX_DELTA_BYTES = 1024 * 1024;
const MAX_ACTIVE = 128;
const CUT_SHORT = 'error decoding response body';

export function httpMethods({ env }: CodexSurroundings): MethodTable {
  const clients = new WeakMap<CodexSession, HttpClient>();
  return {
    'http/request': (params, session) => {
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

  async request(asked: Asked): Promise<unknown> {
    const { requestId, streamed } = asked;
    if (streamed && this.streams.has(requestId))
      throw invalid(`http/request streamResponse requestId \`${requestId}\` is already active`);
    if (this.active >= MAX_ACTIVE)
      throw failure(`${MAX_ACTIVE} requests of this connection are active already`);
    this.active += 1;
    if (streamed) this.streams.add(requestId);
    const over = (): void => {
      this.active -= 1;
      if (streamed) this.streams.delete(requestId);
    };
    const deadline = new Deadline(asked.timeoutMs, this.session.gone);
    let streaming = false;
    try {
      const response = await responseTo(asked, this.agents, deadline.signal);
      const answer = { status: response.statusCode, headers: headersOf(response) };
      if (!streamed) return { ...answer, bodyBase64: await wholeBody(response, deadline.signal) };
      streaming = true;
      // After the answer: a client may not know of the stream before.
      setImmediate(() => {
        void this.stream(requestId, response).finally(() => {
          deadline.end();
          over();
        });
      });
      return { ...answer, bodyBase64: '' };
    } finally {
      if (!streaming) {
        deadline.end();
        over();
      }
    }
  }

  private async stream(requestId: string, response: IncomingMessage): Promise<void> {
    let seq = 0;
    const tell = (delta: Buffer, done: boolean, error: string | null): void => {
      seq += 1;
      const deltaBase64 = delta.toString('base64');
      this.session.notify('http/request/bodyDelta', { requestId, seq, deltaBase64, done, error });
    };
    let problem: string | null = null;
    try {
      for await (const chunk of response as AsyncIterable<Buffer>) {
        for (let at = 0; at < chunk.length; at += MAX_DELTA_BYTES)
          tell(chunk.subarray(at, at + MAX_DELTA_BYTES), false, null);
        await this.session.room();
        if (this.session.gone.aborted) return;
      }
      if (!response.complete) problem = CUT_SHORT;
    } catch {
      problem = CUT_SHORT;
    }
    if (!this.session.gone.aborted) tell(Buffer.alloc(0), true, problem);
  }
}

/** Ends a request with its time or with its connection. */
class Deadline {
  readonly signal: AbortSignal;
  private readonly controller = new AbortController();
  private readonly timer: NodeJS.Timeout | undefined;
  private readonly gone: AbortSignal;
  private readonly give = (): void => this.controller.abort();

  constructor(timeoutMs: number | undefined, gone: AbortSignal) {
    this.signal = this.controller.signal;
    this.gone = gone;
    gone.addEventListener('abort', this.give, { once: true });
    if (gone.aborted || timeoutMs === 0) this.give();
    // Node fires a longer timer at once.
    if (timeoutMs !== undefined && timeoutMs < 2 ** 31) {
      this.timer = setTimeout(this.give, timeoutMs);
      this.timer.unref();
    }
  }

  end(): void {
    clearTimeout(this.timer);
    this.gone.removeEventListener('abort', this.give);
  }
}

async function wholeBody(response: IncomingMessage, signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > MAX_BODY_BYTES) break;
      chunks.push(chunk);
    }
  } catch {
    throw cutShort();
  }
  if (size > MAX_BODY_BYTES) {
    response.destroy();
    throw failure(`the response body is larger than ${MAX_BODY_BYTES} bytes; stream it`);
  }
  if (!response.complete || signal.aborted) throw cutShort();
  return Buffer.concat(chunks, size).toString('base64');
}

function cutShort(): RpcError {
  return new RpcError(rpcCodes.failed, `failed to read http/request response body: ${CUT_SHORT}`);
}

/** In their order, repeated ones kept; values that are no text are left out, as the peer does. */
function headersOf({ rawHeaders }: IncomingMessage): Header[] {
  const headers: Header[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const [name = '', value = ''] = rawHeaders.slice(index, index + 2);
    if (/^[\t\x20-\x7e]*$/.test(value)) headers.push({ name: name.toLowerCase(), value });
  }
  return headers;
}
