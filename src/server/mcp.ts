// The MCP dialect: Streamable HTTP at /mcp, behind the same gate as everything else. It translates and decides nothing;
// the protocol's library is loaded with the first request.

import type { Clock } from '../base/clock.ts';
import { nearApi } from '../client/near-api.ts';
import { realSignal } from '../protocol/cancellation.ts';
import { EVERYONE, type HostApi, type Owner } from '../protocol/host-api.ts';
import { createMcpServer } from '../tools/mcp-server.ts';
import { chatOf, chatOwner } from './chat.ts';
import type { Caller } from './gate.ts';
import { McpSessions } from './mcp-sessions.ts';
import { nativeOwner } from './native-owner.ts';
import { nearTerminals } from './terminals/near-terminals.ts';
import type { TerminalCallOptions } from './terminals/terminal-calls.ts';
import { writePaced } from './paced-write.ts';
import type { Exchange, Route } from './router.ts';
import type { StartRate } from './start-rate.ts';

export interface McpRouteOptions {
  readonly host: HostApi;
  readonly clock: Clock;
  readonly terminals: TerminalCallOptions['terminals'];
  /** The shell of whoever runs the server. */
  readonly shell: string;
  readonly startRate: StartRate;
  readonly defaultDirectory?: string | undefined;
  /** How often a wait tells that it goes on. */
  readonly heartbeatMs?: number | undefined;
  readonly report: (message: string) => void;
}

/** Owns what an admin's client starts without naming an owner or a chat. */
const MCP_OWNER: Owner = 'mcp';

export function mcpRoutes(options: McpRouteOptions): { routes: Route[]; close(): Promise<void> } {
  const perToken = new Map<string, McpSessions>();
  const sessionsOf = (caller: Caller): McpSessions => {
    let sessions = perToken.get(caller.tokenId);
    if (!sessions) perToken.set(caller.tokenId, (sessions = sessionsFor(options, caller)));
    return sessions;
  };
  const handler = async (exchange: Exchange): Promise<undefined> => {
    const sessions = sessionsOf(exchange.caller);
    const deliver = (response: Response): Promise<void> => pass(exchange, response);
    await sessions.answer(ownerOf(exchange), webRequest(exchange), deliver);
    return undefined;
  };
  return {
    routes: (['POST', 'GET', 'DELETE'] as const).map((method) => {
      return { method, path: '/mcp', handler };
    }),
    close: async () => {
      await Promise.all(Array.from(perToken.values(), (sessions) => sessions.close()));
    },
  };
}

/** Per token, so that its starts count for it. */
function sessionsFor(options: McpRouteOptions, caller: Caller): McpSessions {
  const { host, clock, startRate, defaultDirectory: directory, heartbeatMs, report } = options;
  return new McpSessions({
    clock,
    serve: (owner, sessionId) => {
      const api = nearApi(host, owner);
      const near = nearTerminals(options, owner);
      return createMcpServer({
        connection: {
          ...api,
          start: async (spec) => {
            startRate.take(caller);
            return api.start(spec);
          },
          terminals: {
            ...near,
            open: async (spec) => {
              startRate.take(caller);
              return near.open(spec);
            },
          },
        },
        clock,
        sessionId,
        directory,
        by: owner,
        ...(heartbeatMs !== undefined && { progressEveryMs: heartbeatMs }),
        report: (error) => report(`mcp: ${error instanceof Error ? error.message : String(error)}`),
      });
    },
  });
}

function ownerOf(exchange: Exchange): Owner {
  const { sees } = nativeOwner(exchange);
  if (sees !== EVERYONE) return sees;
  const chat = chatOf(exchange.request.headers);
  return chat ? chatOwner(chat.id) : MCP_OWNER;
}

function webRequest({ request, body, gone }: Exchange): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (typeof value === 'string') headers.set(name, value);
  }
  const { method = 'GET' } = request;
  return new Request('http://localhost/mcp', {
    method,
    headers,
    signal: realSignal(gone),
    ...(method === 'POST' && { body: Uint8Array.from(body) }),
  });
}

/** At the reader's pace; when it goes away, the protocol's library is told by the end of its stream. */
async function pass(exchange: Exchange, answer: Response): Promise<void> {
  const { response, gone } = exchange;
  response.writeHead(answer.status, {
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    ...Object.fromEntries(answer.headers),
  });
  if (!answer.body) {
    response.end();
    return;
  }
  response.flushHeaders();
  const reader = answer.body.getReader();
  const leave = (): void => void reader.cancel();
  gone.addEventListener('abort', leave, { once: true });
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      await writePaced(exchange, Buffer.from(value));
    }
    response.end();
  } finally {
    gone.removeEventListener('abort', leave);
  }
}
