// The control plane: sandboxes are made, found, given more time and killed. What a process host cannot honour is refused.

import { statfs } from 'node:fs/promises';
import { availableParallelism, totalmem } from 'node:os';
import { EVERYONE } from '../../protocol/host-api.ts';
import type { Exchange } from '../http/router.ts';
import { E2bError } from './errors.ts';
import {
  type Fields,
  get,
  getNumber,
  getText,
  getTextMap,
  invalid,
  readMessage,
} from './messages.ts';
import type { Sandbox, SandboxStore } from './sandbox-store.ts';
import type { SandboxTokens } from './sandbox-tokens.ts';

/** Of the peer's program inside a sandbox: clients decide by it what they may ask for. */
const ENVD_VERSION = '0.6.13';
const DEFAULT_TIMEOUT_S = 300;
/** The keeper's longest lease. */
const MAX_TIMEOUT_S = 24 * 60 * 60;
const LIST_LIMIT = 100;
const MIB = 1024 * 1024;

/** Options of a new sandbox that a process host cannot honour, with the value that asks for nothing. */
const refusals: Readonly<Record<string, (value: unknown) => boolean>> = {
  allow_internet_access: (value) => value === false,
  network: isConfigured,
  iam: isConfigured,
  mcp: isConfigured,
  volumeMounts: isConfigured,
};

function isConfigured(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0;
}

export class ControlPlane {
  private readonly store: SandboxStore;
  private readonly tokens: SandboxTokens;
  private readonly home: string;

  constructor(store: SandboxStore, tokens: SandboxTokens, home: string) {
    this.store = store;
    this.tokens = tokens;
    this.home = home;
  }

  async answer(method: string, path: string, exchange: Exchange): Promise<unknown> {
    const { params } = exchange;
    if (path.startsWith('/templates/')) return { templateID: params['alias'] ?? '', public: true };
    if (params['id'] === undefined)
      return method === 'POST' ? this.create(exchange) : this.list(exchange);
    const sandbox = this.find(exchange);
    if (method === 'DELETE') {
      await this.store.kill(sandbox);
      return noContent(exchange);
    }
    if (path.endsWith('/metrics')) return [];
    if (method === 'GET') return { ...(await this.detail(sandbox)), ...this.access(sandbox) };
    if (path.endsWith('/connect') || path.endsWith('/resume'))
      return this.connect(exchange, sandbox);
    if (this.store.isPaused(sandbox)) throw unknownSandbox(sandbox.id);
    const isTimeout = path.endsWith('/timeout');
    return isTimeout ? this.setTimeout(exchange, sandbox) : this.refresh(exchange, sandbox);
  }

  private async create(exchange: Exchange): Promise<undefined> {
    const body = bodyOf(exchange);
    for (const [name, asksFor] of Object.entries(refusals))
      if (asksFor(body[name])) throw unhonoured(name);
    const about = {
      creator: exchange.caller.owner,
      templateId: getText(body, 'templateID') ?? 'base',
      metadata: getTextMap(body, 'metadata'),
      env: variablesOf(body),
      ...(body['autoPause'] === true && { keeps: true }),
    };
    const sandbox = await this.store.create(about, timeoutOf(body, DEFAULT_TIMEOUT_S) * 1000);
    return send(exchange, 201, this.access(sandbox));
  }

  /** Never shortens the time of a sandbox, and gives one whose time is over a new one. */
  private async connect(exchange: Exchange, sandbox: Sandbox): Promise<unknown> {
    const fallback = this.store.isPaused(sandbox) ? DEFAULT_TIMEOUT_S : 0;
    const timeoutMs = timeoutOf(bodyOf(exchange), fallback) * 1000;
    const longer = timeoutMs > sandbox.endAtMs - Date.now();
    return this.access(longer ? await this.store.setTimeout(sandbox, timeoutMs) : sandbox);
  }

  private async setTimeout(exchange: Exchange, sandbox: Sandbox): Promise<undefined> {
    await this.store.setTimeout(sandbox, timeoutOf(bodyOf(exchange), DEFAULT_TIMEOUT_S) * 1000);
    return noContent(exchange);
  }

  private async refresh(exchange: Exchange, sandbox: Sandbox): Promise<undefined> {
    const seconds = getNumber(bodyOf(exchange), 'duration') ?? 0;
    const timeoutMs = Math.min(seconds, MAX_TIMEOUT_S) * 1000;
    if (timeoutMs > sandbox.endAtMs - Date.now()) await this.store.setTimeout(sandbox, timeoutMs);
    return noContent(exchange);
  }

  private async list(exchange: Exchange): Promise<unknown> {
    const { query, response } = exchange;
    const wanted = metadataOf(query.get('metadata') ?? '');
    const states = query.get('state')?.split(',') ?? ['running'];
    const all = this.store.all().filter((sandbox) => {
      const matches = ([key, value]: [string, string]): boolean => sandbox.metadata[key] === value;
      return isVisible(exchange, sandbox) && wanted.every(matches);
    });
    const found = all.filter((sandbox) => states.includes(this.stateOf(sandbox)));
    const from = Number(query.get('nextToken') ?? 0) || 0;
    const limit = Math.min(Number(query.get('limit') ?? LIST_LIMIT) || LIST_LIMIT, LIST_LIMIT);
    if (found.length > from + limit) response.setHeader('x-next-token', String(from + limit));
    return Promise.all(found.slice(from, from + limit).map((sandbox) => this.detail(sandbox)));
  }

  private find(exchange: Exchange): Sandbox {
    const id = exchange.params['id'] ?? '';
    const sandbox = this.store.findKept(id);
    if (sandbox && isVisible(exchange, sandbox)) return sandbox;
    throw unknownSandbox(id);
  }

  private stateOf(sandbox: Sandbox): 'running' | 'paused' {
    return this.store.isPaused(sandbox) ? 'paused' : 'running';
  }

  private access(sandbox: Sandbox): Record<string, unknown> {
    const { id, templateId } = sandbox;
    return {
      sandboxID: id,
      templateID: templateId,
      clientID: 'holdfast',
      envdVersion: ENVD_VERSION,
      envdAccessToken: this.tokens.tokenOf(id),
      domain: null,
    };
  }

  private async detail(sandbox: Sandbox): Promise<Record<string, unknown>> {
    const { id, templateId, metadata, startedAtMs, endAtMs } = sandbox;
    const { blocks, bsize } = await statfs(this.home);
    return {
      sandboxID: id,
      templateID: templateId,
      clientID: 'holdfast',
      envdVersion: ENVD_VERSION,
      startedAt: new Date(startedAtMs).toISOString(),
      endAt: new Date(endAtMs).toISOString(),
      state: this.stateOf(sandbox),
      cpuCount: availableParallelism(),
      memoryMB: Math.floor(totalmem() / MIB),
      diskSizeMB: Math.floor((blocks * bsize) / MIB),
      metadata,
      volumeMounts: [],
    };
  }
}

function isVisible({ caller }: Exchange, { creator }: Sandbox): boolean {
  return caller.admin || creator === caller.owner || caller.owner === EVERYONE;
}

function bodyOf({ body }: Exchange): Fields {
  return body.length === 0 ? {} : readMessage(body);
}

function timeoutOf(body: Fields, fallback: number): number {
  const seconds = getNumber(body, 'timeout') ?? fallback;
  if (seconds <= MAX_TIMEOUT_S && (seconds > 0 || get(body, 'timeout') === undefined))
    return seconds;
  throw invalid(`timeout must be 1 to ${MAX_TIMEOUT_S} seconds`);
}

/** Keys and values are percent-encoded once more inside the query. */
function metadataOf(text: string): [string, string][] {
  if (text === '') return [];
  return Array.from(new URLSearchParams(text), ([key, value]) => [decoded(key), decoded(value)]);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function unknownSandbox(id: string): E2bError {
  return new E2bError('not_found', `Sandbox ${id} was not found.`);
}

function unhonoured(name: string): E2bError {
  const problem = `"${name}" cannot be honoured: a sandbox of Holdfast is a group of processes on this machine. Create it without "${name}".`;
  return new E2bError('invalid_argument', problem);
}

function send({ response }: Exchange, status: number, value: unknown): undefined {
  const text = JSON.stringify(value);
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(text),
    'Cache-Control': 'no-store',
  });
  response.end(text);
  return undefined;
}

function noContent({ response }: Exchange): undefined {
  response.writeHead(204, { 'Cache-Control': 'no-store' });
  response.end();
  return undefined;
}

/** Refused here: every command of the sandbox would fail with them. */
function variablesOf(body: Fields): Record<string, string> {
  const variables = getTextMap(body, 'envVars');
  for (const [name, value] of Object.entries(variables))
    if (!/^[^=\0]+$/.test(name) || value.includes('\0'))
      throw invalid(`envVars has a name or value that no environment can have: "${name}"`);
  return variables;
}
