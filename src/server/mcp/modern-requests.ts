// The requests of one token in MCP's revision of 2026. There are no sessions: what must outlive a request is kept per owner.

import type { McpHttpHandler } from '@modelcontextprotocol/server';
import type { Owner } from '../../protocol/host-api.ts';
import type { McpQuestion } from './sessions.ts';
import { createModernHandler, loadMcpLibrary, type McpOptions } from '../../tools/mcp/server.ts';

/** An admin's clients can name owners; the one that was used longest ago is forgotten first. */
const MAX_OWNERS = 100;

export class ModernRequests {
  private readonly serve: (owner: Owner) => McpOptions;
  private readonly maxBodyBytes: number;
  private readonly handlers = new Map<Owner, Promise<McpHttpHandler>>();

  constructor(serve: (owner: Owner) => McpOptions, maxBodyBytes: number) {
    this.serve = serve;
    this.maxBodyBytes = maxBodyBytes;
  }

  get isUsed(): boolean {
    return this.handlers.size > 0;
  }

  /** Undefined for a request of an older revision. */
  async answer(
    owner: Owner,
    { request, parsedBody }: McpQuestion,
    gone: () => AbortSignal,
  ): Promise<Response | undefined> {
    const { isLegacyRequest } = await loadMcpLibrary();
    if (parsedBody === undefined || (await isLegacyRequest(request, parsedBody))) return undefined;
    const handler = await this.handlerOf(owner);
    return handler.fetch(new Request(request, { signal: gone() }), { parsedBody });
  }

  async close(): Promise<void> {
    const all = Array.from(this.handlers.values());
    this.handlers.clear();
    await Promise.all(all.map(async (handler) => (await handler).close()));
  }

  private handlerOf(owner: Owner): Promise<McpHttpHandler> {
    const { maxBodyBytes: maxRequestBodySize } = this;
    const known = this.handlers.get(owner);
    const handler = known ?? createModernHandler({ ...this.serve(owner), maxRequestBodySize });
    this.handlers.delete(owner);
    this.handlers.set(owner, handler);
    const [oldest] = this.handlers;
    if (this.handlers.size > MAX_OWNERS && oldest) {
      this.handlers.delete(oldest[0]);
      void oldest[1].then((forgotten) => forgotten.close());
    }
    return handler;
  }
}
