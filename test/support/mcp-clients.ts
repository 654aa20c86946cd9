// Clients of MCP for tests, the official ones: over stdio with a program of its own, and over HTTP.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { onCleanup, program, stopKeeper, temporaryFolder } from './hosts.ts';

export interface Connected {
  readonly client: Client;
  /** Notifications, by their method, in the order in which they came. */
  readonly reported: { readonly method: string; readonly params: Record<string, unknown> }[];
  /** The next notification of a method that is not yet in `reported`. */
  next(method: string): Promise<Record<string, unknown>>;
}

const main = program('../../dist/cli/main.js');

/** `holdfast mcp` in a home of its own, with the local server that it starts. */
export async function overStdio(home: string, ...args: string[]): Promise<Connected> {
  return connected(stdioTransport(home, args));
}

/** How the client finds the revision: the newest that both sides know, one that it insists on, or one before 2026. */
type Negotiation = 'legacy' | 'auto' | { readonly pin: string };

export async function negotiatedOverStdio(home: string, mode: Negotiation): Promise<Connected> {
  return connected(stdioTransport(home, []), mode);
}

function stdioTransport(home: string, args: readonly string[]): StdioClientTransport {
  return new StdioClientTransport({
    command: process.execPath,
    args: [main, 'mcp', '--home', home, ...args],
    env: { ...(process.env as Record<string, string>), HOLDFAST_IDLE: '60s' },
    stderr: 'inherit',
  });
}

export function homeForStdio(): string {
  const home = temporaryFolder();
  onCleanup(() => stopKeeper(home));
  onCleanup(() => endServer(home));
  return home;
}

export async function overHttp(
  url: string,
  headers: Record<string, string>,
  mode: Negotiation = 'legacy',
): Promise<Connected & { readonly transport: StreamableHTTPClientTransport }> {
  const transport = new StreamableHTTPClientTransport(new URL('/mcp', url), {
    requestInit: { headers },
  });
  return { ...(await connected(transport, mode)), transport };
}

async function connected(
  transport: Parameters<Client['connect']>[0],
  mode: Negotiation = 'legacy',
): Promise<Connected> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
  const reported: Connected['reported'] = [];
  const waiting = new Set<() => void>();
  for (const method of [
    'notifications/message',
    'notifications/resources/updated',
    'notifications/resources/list_changed',
  ] as const) {
    client.setNotificationHandler(method, ({ params }) => {
      reported.push({ method, params: { ...params } });
      for (const wake of waiting) wake();
      waiting.clear();
    });
  }
  await client.connect(transport);
  onCleanup(() => client.close());
  return {
    client,
    reported,
    next: async (method) => {
      const known = reported.length;
      for (;;) {
        const found = reported.slice(known).find((each) => each.method === method);
        if (found) return found.params;
        await new Promise<void>((resolve) => waiting.add(resolve));
      }
    },
  };
}

/** Ends the server of a home, which belongs to nobody. */
export async function endServer(home: string): Promise<void> {
  const { endServer: end } = await import('../../src/cli/local/server.ts');
  await end(home);
}
