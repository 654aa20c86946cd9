// A server of its own for tests, in front of a keeper of its own, and a caller that sends what coder's client sends: JSON
// with a newline at its end and no Content-Type.

import { Agent, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/base/clock.ts';
import { createDoor, type DoorOptions } from '../../src/server/http/door.ts';
import { Router, type Route } from '../../src/server/http/router.ts';
import { startServer, type RunningServer, type ServerOptions } from '../../src/server/server.ts';
import { Tokens } from '../../src/server/http/tokens.ts';
import { serveByGateway } from './gateway-server.ts';
import { onCleanup, stopKeeper } from './hosts.ts';

export const PREFIX = '/api/v0/processes';

export interface Served {
  readonly server: RunningServer;
  readonly home: string;
  readonly token: string;
  readonly port: number;
  readonly tokens: Tokens;
  /** What the server reported of its own mistakes. */
  readonly reports: readonly string[];
  readonly client: CoderClient;
  /** With headers of a chat. */
  chat(id: string, ancestors?: string): CoderClient;
  /** With a token that speaks for one chat. */
  scoped(id: string, headers?: Record<string, string>): CoderClient;
  stop(): Promise<void>;
}

/** Ends everything of it by `stop`. With FLEET set (`npm run test:fleet`) it is a gateway, and a host behind it. */
export async function serve(options: Partial<ServerOptions> = {}): Promise<Served> {
  const home = options.home ?? mkdtempSync(join(tmpdir(), 'holdfast-wire-'));
  const reports: string[] = [];
  const whole: ServerOptions = {
    env: process.env,
    keeperArgs: ['--idle-ms', '60000'],
    report: (message) => reports.push(message),
    tokenFile: join(home, 'token'),
    ...options,
    home,
  };
  const { server, stop } = await (process.env['FLEET'] === undefined
    ? serveAlone(whole)
    : serveByGateway(whole));
  const token = readFileSync(server.tokenFile ?? '', 'utf8').trim();
  const agent = new Agent({ keepAlive: true });
  const tokens = new Tokens(home, systemClock);
  const caller = (bearer: string, headers: Record<string, string>): CoderClient =>
    new CoderClient(server.url, agent, { authorization: `Bearer ${bearer}`, ...headers });
  return {
    server,
    home,
    token,
    port: Number(new URL(server.url).port),
    tokens,
    reports,
    client: caller(token, {}),
    chat: (id, ancestors) =>
      caller(token, {
        'coder-chat-id': id,
        ...(ancestors !== undefined && { 'coder-ancestor-chat-ids': ancestors }),
      }),
    scoped: (id, headers = { 'coder-chat-id': id }) =>
      caller(tokens.create(`chat:${id}`).token, headers),
    stop: async () => {
      agent.destroy();
      await stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

async function serveAlone(options: ServerOptions): Promise<Pick<Served, 'server' | 'stop'>> {
  const server = await startServer(options);
  const stop = async (): Promise<void> => {
    await server.close();
    await stopKeeper(options.home);
  };
  return { server, stop };
}

/** A door alone, over routes of the test's choice; the token is "full". Gone after the test. */
export async function openDoor(
  routes: readonly Route[],
  options: Partial<DoorOptions> = {},
): Promise<{ door: Server; port: number; client: CoderClient }> {
  const hosts = new Set<string>();
  const door = createDoor({
    router: new Router(routes),
    policy: {
      hosts,
      origins: new Set(),
      bearer: (token) => {
        if (token === 'full') return { tokenId: 'admin', owner: '*' };
        return token === 'scoped' ? { tokenId: 'scoped', owner: 'scoped' } : undefined;
      },
    },
    kind: 'tcp',
    maxBodyBytes: 1024 * 1024,
    report: (message) => {
      throw new Error(message);
    },
    ...options,
  });
  await new Promise<void>((resolve) => {
    door.listen(0, '127.0.0.1', resolve);
  });
  const { port } = door.address() as AddressInfo;
  hosts.add(`127.0.0.1:${port}`);
  const agent = new Agent({ keepAlive: true });
  onCleanup(async () => {
    agent.destroy();
    door.closeAllConnections();
    await new Promise((resolve) => {
      door.close(resolve);
    });
  });
  const headers = { authorization: 'Bearer full' };
  return { door, port, client: new CoderClient(`http://127.0.0.1:${port}`, agent, headers) };
}

export interface Reply {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly text: string;
}

export interface OutputBody {
  output: string;
  running: boolean;
  exit_code?: number;
  command?: string;
  truncated?: Record<string, number | string>;
  settled: boolean;
  streams_open: boolean;
  outcome?: Record<string, unknown>;
  [field: string]: unknown;
}

export interface ListedProcess extends OutputBody {
  id: string;
  workdir: string;
  background: boolean;
  started_at_unix: number;
  exited_at_unix?: number;
}

export class CoderClient {
  readonly url: string;
  readonly agent: Agent;
  readonly headers: Readonly<Record<string, string>>;

  constructor(url: string, agent: Agent, headers: Readonly<Record<string, string>>) {
    this.url = url;
    this.agent = agent;
    this.headers = headers;
  }

  with(headers: Record<string, string>): CoderClient {
    return new CoderClient(this.url, this.agent, { ...this.headers, ...headers });
  }

  /** `body`: a string is sent as it is, anything else as JSON. */
  send(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Reply> {
    const bytes =
      body === undefined || typeof body === 'string' ? (body ?? '') : `${JSON.stringify(body)}\n`;
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(bytes)) };
    return new Promise((resolve, reject) => {
      const headers = { ...this.headers, ...length };
      const { agent } = this;
      const asked = request(`${this.url}${path}`, { method, headers, agent, signal });
      asked.on('error', reject);
      asked.on('response', (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (text += chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
        );
      });
      asked.end(bytes);
    });
  }

  /** Under the dialect's prefix; the status and the parsed answer, which the caller names the type of. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters
  async call<T = Record<string, unknown>>(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number; body: T }> {
    const { status, text } = await this.send(method, PREFIX + path, body);
    return { status, body: JSON.parse(text) as T };
  }

  async start(spec: string | Record<string, unknown>): Promise<string> {
    const body = typeof spec === 'string' ? { command: spec } : spec;
    const answer = await this.call<{ id: string }>('POST', '/start', body);
    if (answer.status !== 200)
      throw new Error(`start: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body.id;
  }

  async output(id: string, query = ''): Promise<OutputBody> {
    const answer = await this.call<OutputBody>('GET', `/${id}/output${query}`);
    if (answer.status !== 200)
      throw new Error(`output: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  wait(id: string): Promise<OutputBody> {
    return this.output(id, '?wait=true');
  }

  async run(spec: string | Record<string, unknown>): Promise<OutputBody> {
    return this.wait(await this.start(spec));
  }

  async list(query = ''): Promise<ListedProcess[]> {
    return (await this.call<{ processes: ListedProcess[] }>('GET', `/list${query}`)).body.processes;
  }

  async signal(id: string, signal: unknown): Promise<{ status: number; message: unknown }> {
    const { status, body } = await this.call('POST', `/${id}/signal`, { signal });
    return { status, message: body['message'] };
  }
}
