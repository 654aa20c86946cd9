// The MCP dialect: Streamable HTTP at /mcp, behind the same gate as all routes. It translates and decides nothing. The
// MCP library is loaded soon after the start.

import type { Clock } from '../../base/clock.ts';
import { realSignal } from '../../protocol/cancellation.ts';
import { EVERYONE, type HostApi, type Owner } from '../../protocol/host-api.ts';
import { createMcpServer } from '../../tools/mcp/server.ts';
import { chatOf, chatOwner } from '../coder/chat-scope.ts';
import type { Caller } from '../http/gate.ts';
import { McpSessions } from './sessions.ts';
import { nativeOwner } from '../native/owner.ts';
import { inProcessApi } from '../../terminals/in-process-api.ts';
import type { TerminalCallOptions } from '../../terminals/in-process-terminals.ts';
import { writePaced } from '../http/paced-write.ts';
import type { Exchange, Route } from '../http/router.ts';
import type { StartRate } from '../start-rate.ts';

export interface McpRouteOptions {
  readonly host: HostApi;
  readonly clock: Clock;
  readonly terminals: TerminalCallOptions['terminals'];
  /** The shell of the server's user. */
  readonly shell: string;
  readonly startRate: StartRate;
  /** Whether a scoped token is neither revoked nor expired; by default always. */
  readonly isValid?: ((tokenId: string) => boolean) | undefined;
  readonly defaultDirectory?: string | undefined;
  /** How often a wait reports progress. */
  readonly heartbeatMs?: number | undefined;
  readonly report: (message: string) => void;
}

/** How often revoked tokens are looked for. */
const SWEEP_MS = 60_000;

interface TokenEntry {
  readonly caller: Caller;
  readonly sessions: McpSessions;
  /** Requests that are being answered. */
  open: number;
}

/** Owns what an admin's client starts without naming an owner or a chat. */
const MCP_OWNER: Owner = 'mcp';

export function mcpRoutes(options: McpRouteOptions): { routes: Route[]; close(): Promise<void> } {
  const tokens = new TokenSessions(options);
  const handler = async (exchange: Exchange): Promise<undefined> => {
    const entry = tokens.entryOf(exchange.caller);
    const deliver = (response: Response): Promise<void> => sendResponse(exchange, response);
    entry.open += 1;
    try {
      await entry.sessions.answer(ownerOf(exchange), webRequest(exchange), deliver);
    } finally {
      entry.open -= 1;
    }
    return undefined;
  };
  return {
    routes: (['POST', 'GET', 'DELETE'] as const).map((method) => {
      return { method, path: '/mcp', handler };
    }),
    close: () => tokens.close(),
  };
}

/** The sessions of each token. When a token is revoked or expires, its sessions end. */
class TokenSessions {
  private readonly options: McpRouteOptions;
  private readonly entries = new Map<string, TokenEntry>();
  private cancelSweep: (() => void) | undefined;

  constructor(options: McpRouteOptions) {
    this.options = options;
  }

  entryOf(caller: Caller): TokenEntry {
    const known = this.entries.get(caller.tokenId);
    if (known) return known;
    this.sweep();
    const entry = { caller, sessions: sessionsFor(this.options, caller), open: 0 };
    this.entries.set(caller.tokenId, entry);
    this.cancelSweep ??= this.options.clock.after(SWEEP_MS, () => this.sweep());
    return entry;
  }

  async close(): Promise<void> {
    this.cancelSweep?.();
    await Promise.all(Array.from(this.entries.values(), ({ sessions }) => sessions.close()));
  }

  /** A token without sessions is forgotten. */
  private sweep(): void {
    const { isValid, clock } = this.options;
    for (const [tokenId, { sessions, caller, open }] of this.entries) {
      const revoked = !caller.admin && isValid?.(tokenId) === false;
      if (revoked || (sessions.size === 0 && open === 0)) this.entries.delete(tokenId);
      if (revoked) void sessions.close();
    }
    this.cancelSweep?.();
    this.cancelSweep =
      this.entries.size === 0 ? undefined : clock.after(SWEEP_MS, () => this.sweep());
  }
}

/** Per token, so that starts count against its rate. */
function sessionsFor(options: McpRouteOptions, caller: Caller): McpSessions {
  const { clock, startRate, defaultDirectory: directory, heartbeatMs, report } = options;
  return new McpSessions({
    clock,
    serve: (owner, sessionId) => {
      const api = inProcessApi(options, owner);
      return createMcpServer({
        connection: {
          ...api,
          start: async (spec, signal) => {
            await startRate.admit(caller);
            return api.start(spec, signal);
          },
          terminals: {
            ...api.terminals,
            open: async (spec) => {
              await startRate.admit(caller);
              return api.terminals.open(spec);
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

/** At the client's pace. When the client disconnects, the library sees its stream cancelled. */
async function sendResponse(exchange: Exchange, answer: Response): Promise<void> {
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
  const cancel = (): void => void reader.cancel();
  gone.addEventListener('abort', cancel);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      await writePaced(exchange, Buffer.from(value));
    }
    response.end();
  } finally {
    gone.removeEventListener('abort', cancel);
  }
}
