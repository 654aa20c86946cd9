// The MCP dialect: Streamable HTTP at /mcp, behind the same gate as all routes. It translates and decides nothing.

import { sharePromise } from '../../base/once.ts';
import { realSignal } from '../../protocol/cancellation.ts';
import { EVERYONE, type Owner } from '../../protocol/host-api.ts';
import { chatOf, chatOwner } from '../coder/chat-scope.ts';
import { nativeOwner } from '../native/owner.ts';
import { writePaced } from '../http/paced-write.ts';
import type { Exchange, Route } from '../http/router.ts';
import { lazyModules } from '../lazy-modules.ts';
import type { TokenSessions, TokenSessionsOptions } from './token-sessions.ts';

/** Owns what an admin's client starts without naming an owner or a chat. */
const MCP_OWNER: Owner = 'mcp';

export function mcpRoutes(options: TokenSessionsOptions): {
  routes: Route[];
  close(): Promise<void>;
} {
  let tokens: TokenSessions | undefined;
  const open = sharePromise(async () => {
    const module = await lazyModules.mcp();
    tokens = new module.TokenSessions(options);
    return tokens;
  });
  const handler = async (exchange: Exchange): Promise<undefined> => {
    const entry = (await open()).entryOf(exchange.caller);
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
    close: async () => {
      await tokens?.close();
    },
  };
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
