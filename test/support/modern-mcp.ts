// Requests of MCP's revision of 2026 as they are on the wire, for tests: without sessions, with all in each request.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createModernHandler } from '../../src/tools/mcp/server.ts';
import type { Place, Running } from './command-line.ts';
import { FakeClock } from './fake-clock.ts';
import { inProcess, onCleanup, OWNER } from './hosts.ts';
import { apiOver } from './in-process-api.ts';
import { turnsUntil } from './recorder.ts';

export const VERSION = '2026-07-28';
export const TASKS = 'io.modelcontextprotocol/tasks';

export interface Answer {
  readonly status: number;
  readonly result: Record<string, never> & { readonly taskId?: string };
  readonly error: { readonly code: number; readonly message: string; readonly data?: never };
  readonly text: string;
}

export interface Asking {
  readonly tasks?: boolean;
  readonly headers?: Record<string, string>;
  readonly meta?: Record<string, unknown>;
}

export function metaOf({ tasks = false, meta = {} }: Asking): Record<string, unknown> {
  return {
    'io.modelcontextprotocol/protocolVersion': VERSION,
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': tasks ? { extensions: { [TASKS]: {} } } : {},
    ...meta,
  };
}

export type Ask = (
  method: string,
  params?: Record<string, unknown>,
  asking?: Asking,
) => Promise<Answer>;

/** Over HTTP, by default with the `fetch` of Node. */
export function asker(url: string, token: string, send: typeof fetch = fetch): Ask {
  return async (
    method: string,
    params: Record<string, unknown> = {},
    asking: Asking = {},
  ): Promise<Answer> => {
    const name = params['name'] ?? params['uri'] ?? params['taskId'];
    const response = await send(`${url}/mcp`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${token}`,
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        'MCP-Protocol-Version': VERSION,
        'Mcp-Method': method,
        ...(typeof name === 'string' && { 'Mcp-Name': name }),
        ...asking.headers,
      },
      // Every client numbers from 1.
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method,
        params: { ...params, _meta: metaOf(asking) },
      }),
    });
    const text = await response.text();
    const json = text.startsWith('{') ? text : (/^data: (.*)$/m.exec(text)?.[1] ?? '{}');
    return {
      status: response.status,
      text,
      ...(JSON.parse(json) as Omit<Answer, 'status' | 'text'>),
    };
  };
}

/** Asks until the task has ended. */
export async function settleBy(get: Ask, taskId: string): Promise<Record<string, never>> {
  for (;;) {
    const { result } = await get('tasks/get', { taskId }, { tasks: true });
    if (result['status'] !== 'working') return result;
  }
}

/** The answer of the tool in a task that is completed, or in a plain answer. */
export function structured(result: unknown): Record<string, unknown> {
  const { structuredContent } = result as { structuredContent?: Record<string, unknown> };
  return structuredContent ?? {};
}

/** `holdfast serve` as a program of its own, which can be killed, with the token of an admin. */
export async function serveAt(
  place: Place,
  port: number,
): Promise<{ server: Running; url: string; token: string }> {
  const file = join(place.folder, 'token');
  const server = place.start('serve', '--json', '--token-file', file, '--port', String(port));
  await server.until('stdout', '\n');
  const { url } = JSON.parse(server.text('stdout')) as { url: string };
  return { server, url, token: readFileSync(file, 'utf8').trim() };
}

/** The handler of modern requests over a host of this program, both on a clock that the test moves. */
export async function handlerOnFakeClock() {
  const clock = new FakeClock();
  const host = await inProcess({ clock });
  const handler = await createModernHandler({
    connection: apiOver(host, OWNER),
    clock,
    by: OWNER,
    taskKey: () => 'key',
    maxRequestBodySize: 1024 * 1024,
  });
  onCleanup(() => handler.close());
  const send: typeof fetch = (input, init) => handler.fetch(new Request(input, init));
  /** Lets a time pass for a request that waits for exactly that long; the answer comes only after it. */
  const pass = async (ms: number): Promise<void> => {
    await turnsUntil(() => clock.pendingWithin(ms));
    clock.advance(ms);
  };
  return { clock, host, send, pass };
}
