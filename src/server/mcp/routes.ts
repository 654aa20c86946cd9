// The MCP dialect: Streamable HTTP at /mcp, behind the same gate as all routes. It translates and decides nothing.

import { sharePromise } from '../../base/once.ts';
import { realSignal } from '../../protocol/cancellation.ts';
import { EVERYONE, type Owner } from '../../protocol/host-api.ts';
import { chatOf, chatOwner } from '../coder/chat-scope.ts';
import { nativeOwner } from '../native/owner.ts';
import type { Exchange, Route } from '../http/router.ts';
import { lazyModules } from '../lazy-modules.ts';
import { sendAnswer } from './answer.ts';
import type { McpQuestion } from './sessions.ts';
import type { TokenEntry, TokenSessions, TokenSessionsOptions } from './token-sessions.ts';

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
    const deliver = (answer: Response): Promise<void> =>
      sendAnswer(exchange, answer, options.clock);
    entry.open += 1;
    try {
      const owner = ownerOf(exchange);
      const question = questionOf(exchange);
      const modern = await modernAnswer(entry, owner, question, exchange);
      if (modern) await deliver(modern);
      else await entry.sessions.answer(owner, question, deliver);
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

/** Requests of sessions are of an older revision; so is whatever the library does not take for the new one. */
function modernAnswer(
  { modern }: TokenEntry,
  owner: Owner,
  question: McpQuestion,
  { request: { method, headers }, gone }: Exchange,
): Promise<Response | undefined> | undefined {
  if (method !== 'POST' || headers['mcp-session-id'] !== undefined) return undefined;
  // Without sessions, a client cancels a call by closing its connection.
  return modern.answer(owner, question, () => realSignal(gone));
}

function ownerOf(exchange: Exchange): Owner {
  const { sees } = nativeOwner(exchange);
  if (sees !== EVERYONE) return sees;
  const chat = chatOf(exchange.request.headers);
  return chat ? chatOwner(chat.id) : MCP_OWNER;
}

/** What the library is asked, with the body already parsed: reading one from a `Request` takes longer than most tools. */
function questionOf({ request, body }: Exchange): McpQuestion {
  const { method = 'GET' } = request;
  const given = Object.entries(request.headers).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  const about = { method, headers: Object.fromEntries(given) };
  const parsedBody = method === 'POST' ? parsed(body) : undefined;
  // The library reports a body that is no JSON.
  const unread = method === 'POST' && parsedBody === undefined && { body: Uint8Array.from(body) };
  return { request: new Request('http://localhost/mcp', { ...about, ...unread }), parsedBody };
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}
