// The MCP sessions of each token, with the tools. Loaded when the first MCP client comes, or soon after the server's start.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../../base/clock.ts';
import { sharePromise } from '../../base/once.ts';
import type { HostApi, Owner } from '../../protocol/host-api.ts';
import { createMcpServer, loadMcpLibrary, type McpOptions } from '../../tools/mcp/server.ts';
import type { Caller } from '../http/gate.ts';
import { ModernRequests } from './modern-requests.ts';
import { McpSessions } from './sessions.ts';
import { taskKeyIn } from './task-key.ts';
import { inProcessApi } from '../../terminals/in-process-api.ts';
import type { TerminalCallOptions } from '../../terminals/in-process-terminals.ts';
import type { StartRate } from '../start-rate.ts';

/**
 * Loads the library, and lets it build its schemas in a turn of their own: otherwise it builds them for the first client,
 * which takes as long as a third of the loading.
 */
export const prepareMcpLibrary = sharePromise(async () => {
  const { preloadSchemas } = await loadMcpLibrary();
  await nextTurn();
  preloadSchemas();
});

export interface TokenSessionsOptions {
  readonly host: HostApi;
  readonly clock: Clock;
  /** Holds the key that signs the ids of tasks. */
  readonly home: string;
  readonly maxBodyBytes: number;
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

export interface TokenEntry {
  readonly caller: Caller;
  readonly sessions: McpSessions;
  /** For the revision of 2026, which has no sessions. */
  readonly modern: ModernRequests;
  /** Requests that are being answered. */
  open: number;
}

/** The sessions of each token. When a token is revoked or expires, its sessions end. */
export class TokenSessions {
  private readonly options: TokenSessionsOptions;
  private readonly entries = new Map<string, TokenEntry>();
  private cancelSweep: (() => void) | undefined;

  constructor(options: TokenSessionsOptions) {
    this.options = options;
  }

  entryOf(caller: Caller): TokenEntry {
    const known = this.entries.get(caller.tokenId);
    if (known) return known;
    this.sweep();
    const serve = optionsFor(this.options, caller);
    const sessions = sessionsFor(this.options, serve);
    const modern = new ModernRequests(serve, this.options.maxBodyBytes);
    const entry = { caller, sessions, modern, open: 0 };
    this.entries.set(caller.tokenId, entry);
    this.cancelSweep ??= this.options.clock.after(SWEEP_MS, () => this.sweep());
    return entry;
  }

  async close(): Promise<void> {
    this.cancelSweep?.();
    const all = Array.from(this.entries.values());
    await Promise.all(all.flatMap(({ sessions, modern }) => [sessions.close(), modern.close()]));
  }

  /** A token without sessions is forgotten. */
  private sweep(): void {
    const { isValid, clock } = this.options;
    for (const [tokenId, { sessions, modern, caller, open }] of this.entries) {
      const revoked = !caller.admin && isValid?.(tokenId) === false;
      const idle = sessions.size === 0 && !modern.isUsed && open === 0;
      if (!revoked && !idle) continue;
      this.entries.delete(tokenId);
      void sessions.close();
      void modern.close();
    }
    this.cancelSweep?.();
    this.cancelSweep =
      this.entries.size === 0 ? undefined : clock.after(SWEEP_MS, () => this.sweep());
  }
}

/** Per token, so that starts count against its rate. */
function optionsFor(options: TokenSessionsOptions, caller: Caller): (owner: Owner) => McpOptions {
  const { clock, startRate, defaultDirectory: directory, heartbeatMs, report, home } = options;
  return (owner) => {
    const api = inProcessApi(options, owner);
    return {
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
      directory,
      by: owner,
      taskKey: () => taskKeyIn(home),
      ...(heartbeatMs !== undefined && { progressEveryMs: heartbeatMs }),
      report: (error) => report(`mcp: ${error instanceof Error ? error.message : String(error)}`),
    };
  };
}

function sessionsFor(
  { clock }: TokenSessionsOptions,
  serve: (owner: Owner) => McpOptions,
): McpSessions {
  return new McpSessions({
    clock,
    serve: (owner, sessionId) => createMcpServer({ ...serve(owner), sessionId }),
  });
}
