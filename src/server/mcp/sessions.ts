// The MCP sessions of the server: one per client that initialized, each bound to its owner. If this server does not
// know a session, because it was restarted or closed an idle one, it opens the session again under its id, and the
// client notices nothing.

import type {
  Server,
  WebStandardStreamableHTTPServerTransport as Transport,
} from '@modelcontextprotocol/server';
import type { Clock } from '../../base/clock.ts';
import { randomId } from '../../base/ids.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Owner } from '../../protocol/host-api.ts';
import { loadMcpLibrary } from '../../tools/mcp/server.ts';

interface Session {
  readonly transport: Transport;
  readonly server: Server;
  usedAtUs: number;
  /** Requests that are being answered, including the stream of notifications. */
  open: number;
}

const ID = /^hf-[0-9a-z]{26}$/;
const MAX_SESSIONS = 500;
/** The protocol demands 404 for sessions that the client ended. This many are remembered. */
const MAX_ENDED = 1000;

export interface McpQuestion {
  readonly request: Request;
  /** Undefined: the library reads the body of the request. */
  readonly parsedBody: unknown;
}

export interface McpSessionsOptions {
  readonly clock: Clock;
  readonly serve: (owner: Owner, sessionId: string) => Promise<Server>;
}

export class McpSessions {
  private readonly options: McpSessionsOptions;
  private readonly sessions = new Map<string, Session>();
  private readonly opening = new Map<string, Promise<Session>>();
  private readonly ended = new Set<string>();

  constructor(options: McpSessionsOptions) {
    this.options = options;
  }

  /** A request without a session id must be `initialize`; the MCP library checks that. */
  async answer(
    owner: Owner,
    { request, parsedBody }: McpQuestion,
    deliver: (response: Response) => Promise<void>,
  ): Promise<void> {
    const given = request.headers.get('mcp-session-id');
    if (given !== null && (!ID.test(given) || this.ended.has(given)))
      throw new HoldfastError('not_found', 'There is no such session; initialize a new one.');
    const session = given === null ? await this.begin(owner) : await this.find(owner, given);
    session.open += 1;
    try {
      await deliver(await session.transport.handleRequest(request, { parsedBody }));
    } finally {
      session.open -= 1;
      session.usedAtUs = this.options.clock.nowUs();
      // The request was not `initialize`, so there is no session.
      if (session.transport.sessionId === undefined) await session.server.close();
    }
  }

  get size(): number {
    return this.sessions.size + this.opening.size;
  }

  async close(): Promise<void> {
    const all = Array.from(this.sessions.values());
    this.sessions.clear();
    await Promise.all(all.map(({ server }) => server.close()));
  }

  private async find(owner: Owner, id: string): Promise<Session> {
    const name = nameOf(owner, id);
    const known = this.sessions.get(name);
    if (known) return known;
    const opening = this.opening.get(name) ?? this.reopen(owner, id);
    this.opening.set(name, opening);
    try {
      return await opening;
    } finally {
      this.opening.delete(name);
    }
  }

  private begin(owner: Owner): Promise<Session> {
    return this.open(owner, `hf-${randomId()}`);
  }

  /** Repeats the handshake on behalf of the client. */
  private async reopen(owner: Owner, id: string): Promise<Session> {
    const session = await this.open(owner, id);
    const post = async (message: object, headers: Record<string, string>): Promise<void> => {
      const answer = await session.transport.handleRequest(
        new Request('http://localhost/mcp', {
          method: 'POST',
          headers: {
            'Content-Type': 'application/json',
            Accept: 'application/json, text/event-stream',
            ...headers,
          },
          body: JSON.stringify({ jsonrpc: '2.0', ...message }),
        }),
      );
      await answer.text();
    };
    const { LATEST_PROTOCOL_VERSION: protocolVersion } = await loadMcpLibrary();
    const clientInfo = { name: 'reopened', version: '0' };
    const params = { protocolVersion, capabilities: {}, clientInfo };
    await post({ id: 0, method: 'initialize', params }, {});
    await post({ method: 'notifications/initialized' }, { 'Mcp-Session-Id': id });
    return session;
  }

  private async open(owner: Owner, id: string): Promise<Session> {
    const { WebStandardStreamableHTTPServerTransport } = await loadMcpLibrary();
    const name = nameOf(owner, id);
    const server = await this.options.serve(owner, id);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessioninitialized: () => {
        this.sessions.set(name, session);
        this.closeIdle();
      },
      onsessionclosed: () => this.end(name, id),
    });
    const session = { transport, server, usedAtUs: this.options.clock.nowUs(), open: 0 };
    await server.connect(transport);
    return session;
  }

  private end(name: string, id: string): void {
    this.sessions.delete(name);
    this.ended.add(id);
    const [oldest] = this.ended;
    if (this.ended.size > MAX_ENDED && oldest !== undefined) this.ended.delete(oldest);
  }

  private closeIdle(): void {
    if (this.sessions.size <= MAX_SESSIONS) return;
    const idle = Array.from(this.sessions).filter(([, { open }]) => open === 0);
    const [oldest] = idle.sort(([, one], [, two]) => one.usedAtUs - two.usedAtUs);
    if (!oldest) return;
    this.sessions.delete(oldest[0]);
    void oldest[1].server.close();
  }
}

function nameOf(owner: Owner, id: string): string {
  return `${id} ${owner}`;
}
