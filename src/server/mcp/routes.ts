// The MCP dialect: Streamable HTTP at /mcp, behind the same gate as everything else. It translates and decides nothing;
// the protocol's library is loaded soon after the start.

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
  /** The shell of whoever runs the server. */
  readonly shell: string;
  readonly startRate: StartRate;
  /** Whether a scoped token is still good; always, unless told. */
  readonly isValid?: ((tokenId: string) => boolean) | undefined;
  readonly defaultDirectory?: string | undefined;
  /** How often a wait tells that it goes on. */
  readonly heartbeatMs?: number | undefined;
  readonly report: (message: string) => void;
}

/** How often tokens are looked at that were revoked. */
const SWEEP_MS = 60_000;

interface Served {
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
    const served = tokens.of(exchange.caller);
    const deliver = (response: Response): Promise<void> => pass(exchange, response);
    served.open += 1;
    try {
      await served.sessions.answer(ownerOf(exchange), webRequest(exchange), deliver);
    } finally {
      served.open -= 1;
    }
    return undefined;
  };
  return {
    routes: (['POST', 'GET', 'DELETE'] as const).map((method) => {
      return { method, path: '/mcp', handler };
    }),
    close: async () => {
      await tokens.close();
    },
  };
}

/** The sessions of each token. Those of a token that was revoked or has expired end. */
class TokenSessions {
  private readonly options: McpRouteOptions;
  private readonly served = new Map<string, Served>();
  private cancelSweep: (() => void) | undefined;

  constructor(options: McpRouteOptions) {
    this.options = options;
  }

  of(caller: Caller): Served {
    const known = this.served.get(caller.tokenId);
    if (known) return known;
    this.sweep();
    const served = { caller, sessions: sessionsFor(this.options, caller), open: 0 };
    this.served.set(caller.tokenId, served);
    this.cancelSweep ??= this.options.clock.after(SWEEP_MS, () => this.sweep());
    return served;
  }

  async close(): Promise<void> {
    this.cancelSweep?.();
    await Promise.all(Array.from(this.served.values(), ({ sessions }) => sessions.close()));
  }

  /** A token without sessions is forgotten. */
  private sweep(): void {
    const { isValid, clock } = this.options;
    for (const [tokenId, { sessions, caller, open }] of this.served) {
      const revoked = !caller.admin && isValid?.(tokenId) === false;
      if (revoked || (sessions.size === 0 && open === 0)) this.served.delete(tokenId);
      if (revoked) void sessions.close();
    }
    this.cancelSweep?.();
    this.cancelSweep =
      this.served.size === 0 ? undefined : clock.after(SWEEP_MS, () => this.sweep());
  }
}

/** Per token, so that its starts count for it. */
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
