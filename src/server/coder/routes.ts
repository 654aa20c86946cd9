// The dialect of coder's workspace agent, /api/v0/processes: its fields, statuses, sentences and leniency. It translates
// and decides nothing; where the peer is wrong the host is simply right, and says more in fields that its clients ignore.

import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import type { Clock } from '../../base/clock.ts';
import { coderEnding, coderOutput } from '../../protocol/rendering/coder-output.ts';
import { HoldfastError, errors } from '../../protocol/errors.ts';
import { encodeGoJson, quoteGo } from '../../protocol/rendering/go-json.ts';
import type { HostApi, Owner } from '../../protocol/host-api.ts';
import type { StartSpec } from '../../protocol/operations.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { Mounts } from '../../host/start/mounts.ts';
import { chatScope, NO_CHAT, type ChatScope } from './chat-scope.ts';
import { CoderError, decode, flag, signalName, SIGNALS, text, variables } from './body.ts';
import type { Handover } from '../handover.ts';
import { PendingKeys } from './pending-keys.ts';
import { JsonText, type Dialect, type Exchange, type Route } from '../http/router.ts';
import { SharedWaits } from '../shared-waits.ts';
import type { StartRate } from '../start-rate.ts';

const PREFIX = '/api/v0/processes';
/** How long `wait=true` blocks at most; its clients ask again. */
const WAIT_MS = 300_000;
/** The host is asked without an end: each caller has its own. */
const FOR_EVER_MS = Number.MAX_SAFE_INTEGER;
/** How long a start waits for an earlier one with its key that has not spawned yet. */
const START_MS = 15_000;
/** What the shell leaves behind may have a last word: its clients stop reading at `running: false`. */
const DRAIN_MS = 100;
const LIST_LIMIT = 10;
/** As much as the peer's own server reads. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
const MINUTE = 60_000;
/** How long a finished process is kept: longer when its start may be repeated. */
const KEEP_MS = 5 * MINUTE;
const KEEP_KEYED_MS = 60 * MINUTE;

const coderDialect: Dialect = {
  lenientType: true,
  admit: (headers, caller) => void chatScope(headers, caller),
  encode: encodeGoJson,
  error(error) {
    if (error instanceof CoderError) return { status: error.status, body: error.answer };
    const { http } = errors[error.code];
    return {
      status: http,
      body: { message: error.message, code: error.code, detail: error.remedy },
    };
  },
};

export interface CoderOptions {
  readonly host: HostApi;
  readonly clock: Clock;
  /** Lets the keeper answer those who wait, where it can. */
  readonly handover?: Handover;
  /** For scoped tokens: a full one may start as fast as with the peer. */
  readonly startRate?: StartRate;
  /** Where commands run that name no directory, if it exists; otherwise the home directory. */
  readonly defaultDirectory?: string | undefined;
}

interface Waiting {
  readonly host: HostApi;
  readonly handover: Handover | undefined;
  readonly waits: SharedWaits<JsonText>;
}

export function coderRoutes(options: CoderOptions): Route[] {
  const { host, clock, handover } = options;
  const waits = new SharedWaits<JsonText>(clock);
  const row = (method: 'GET' | 'POST', path: string, handler: Route['handler']): Route => ({
    method,
    path: PREFIX + path,
    handler,
    dialect: coderDialect,
    maxBodyBytes: MAX_BODY_BYTES,
  });
  const pending = new PendingKeys();
  return [
    row('POST', '/start', (exchange) => start(exchange, options, pending)),
    row('GET', '/list', (exchange) => list(exchange, host)),
    row('POST', '/signal-by-idempotency-key', (exchange) => signalByKey(exchange, host, pending)),
    row('GET', '/:id/output', (exchange) => output(exchange, { host, handover, waits })),
    row('POST', '/:id/signal', (exchange) => signal(exchange, host)),
  ];
}

async function start(
  exchange: Exchange,
  options: CoderOptions,
  pending: PendingKeys,
): Promise<unknown> {
  const scope = chatScope(exchange.request.headers, exchange.caller);
  const body = decode(exchange.body);
  const command = text(body, 'command');
  if (command === '') throw new CoderError(400, 'Command is required.');
  const key = text(body, 'idempotency_key');
  const workdir = text(body, 'workdir');
  const spec: StartSpec = {
    id: randomUUID(),
    command,
    cwd: workdir || existing(options.defaultDirectory) || '~',
    env: { ...variables(body), ...(scope.chat && { CODER_CHAT_ID: scope.chat.id }) },
    ...(key !== '' && { key }),
    keepMs: key === '' ? KEEP_MS : KEEP_KEYED_MS,
    labels: {
      background: String(flag(body, 'background')),
      ...(workdir !== '' && { workdir }),
      ...(scope.chat && { chat: scope.chat.id, ancestors: scope.chat.ancestors.join(' ') }),
    },
  };
  if (!scope.compat) await options.startRate?.admit(exchange.caller);
  const { process, attached } = await startAs({ ...options, pending }, scope.owner, spec);
  return {
    id: process.id,
    started: !attached,
    ...(key !== '' && { idempotency_key: key }),
    ...(attached && { attached }),
    started_at: seconds(process.startedAtMs),
    pid: process.pid,
  };
}

/**
 * What is configured but not there is as if it were not configured. Where an answer may never come it is not looked for
 * here: the keeper asks, with a time limit.
 */
function existing(folder: string | undefined): string | undefined {
  try {
    if (folder !== undefined && new Mounts(undefined).look().find(folder) === 'elsewhere')
      return folder;
    return folder !== undefined && statSync(folder).isDirectory() ? folder : undefined;
  } catch {
    return undefined;
  }
}

interface Starting extends CoderOptions {
  readonly pending: PendingKeys;
}

async function startAs(
  options: Starting,
  owner: Owner,
  spec: StartSpec,
): ReturnType<HostApi['start']> {
  try {
    return await startOnce(options, owner, spec);
  } catch (error) {
    if (!(error instanceof HoldfastError) || error instanceof CoderError) throw error;
    const { code, message } = error;
    if (code === 'key_conflict') {
      const told = 'Idempotency key was already used to start a process with different parameters.';
      throw new CoderError(409, told, { code: 'input_mismatch', detail: message }, code);
    }
    const detail = `start process: ${message}`;
    const retry = errors[code].retryable ? { code } : {};
    throw new CoderError(500, 'Failed to start process.', { detail, ...retry }, code);
  }
}

/** The ancestors of a chat decide nothing about what runs: a replay that names others is the same start. */
async function startOnce(
  { host, clock, pending }: Starting,
  owner: Owner,
  spec: StartSpec,
): ReturnType<HostApi['start']> {
  const { key, labels } = spec;
  if (key === undefined) return host.start(owner, spec);
  const begin = (one: StartSpec): ReturnType<HostApi['start']> =>
    withinStartTime(pending.during(owner, key, host.start(owner, one)), clock);
  try {
    return await begin(spec);
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== 'key_conflict') throw error;
    const [first] = (await host.list(owner, { key, limit: 1 })).processes;
    const ancestors = first?.labels?.['ancestors'];
    if (ancestors === undefined || ancestors === labels?.['ancestors']) throw error;
    return begin({ ...spec, labels: { ...labels, ancestors } });
  }
}

/** Whoever holds the key goes on; only this caller is sent away, to come again. */
function withinStartTime<T>(started: Promise<T>, clock: Clock): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(START_MS, () => {
      const message = 'Timed out waiting for the concurrent start that holds this idempotency key.';
      reject(new CoderError(409, message, { code: 'start_pending' }, 'key_conflict'));
    });
    started.finally(cancel).then(resolve, reject);
  });
}

async function list(exchange: Exchange, host: HostApi): Promise<unknown> {
  const scope = chatScope(exchange.request.headers, exchange.caller);
  const limit = Number(exchange.query.get('limit') ?? LIST_LIMIT);
  const owner = scope.chat || !scope.compat ? scope.owner : '*';
  const wanted = Number.isInteger(limit) && limit > 0 ? Math.min(limit, 1000) : LIST_LIMIT;
  const { processes, total } = await host.list(owner, { limit: wanted });
  return { processes: processes.map(describe), total };
}

async function output(exchange: Exchange, { host, handover, waits }: Waiting): Promise<unknown> {
  const scope = chatScope(exchange.request.headers, exchange.caller);
  const id = exchange.params['id'] ?? '';
  if (exchange.query.get('wait') === 'true') {
    const params = { id, waitMs: WAIT_MS, drainMs: DRAIN_MS };
    const handedOver = await asOwner(scope, id, async (owner) =>
      handover?.tryAnswer(exchange, owner, { op: 'text', params, render: 'coder' }),
    );
    if (handedOver === true) return undefined;
    // One question to the host for all: the answer is on its way as soon as the shell has ended.
    const { chat, owner, compat } = scope;
    const key = JSON.stringify([id, owner, compat, chat !== undefined]);
    const patience = { timeoutMs: WAIT_MS, gone: exchange.gone };
    const answer = await waits.join(key, patience, async (gone) => {
      const ended = await snapshot(host, scope, id, { waitMs: FOR_EVER_MS, gone });
      return new JsonText(encodeGoJson(ended));
    });
    if (answer) return answer;
  }
  return snapshot(host, scope, id, { waitMs: 0, gone: exchange.gone });
}

async function snapshot(
  host: HostApi,
  scope: ChatScope,
  id: string,
  { waitMs, gone }: { readonly waitMs: number; readonly gone: AbortSignal },
): Promise<unknown> {
  const view = await asOwner(scope, id, (owner) =>
    host.text(owner, { id, waitMs, drainMs: DRAIN_MS }, gone),
  );
  return coderOutput(view);
}

async function signal(exchange: Exchange, host: HostApi): Promise<unknown> {
  const scope = chatScope(exchange.request.headers, exchange.caller);
  const id = exchange.params['id'] ?? '';
  // A foreign process is not found whatever the body says; an unknown one only after the body made sense.
  const known = await find(host, scope, id).catch((error: unknown) => error as HoldfastError);
  if (known instanceof HoldfastError && (await existsForOthers(host, scope, id))) throw known;
  const name = signalName(decode(exchange.body));
  if (known instanceof HoldfastError) throw known;
  await send(host, known, name, new CoderError(409, `Process ${quoteGo(id)} is not running.`));
  return { message: `Signal ${quoteGo(name)} sent to process ${quoteGo(id)}.` };
}

async function signalByKey(
  exchange: Exchange,
  host: HostApi,
  pending: PendingKeys,
): Promise<unknown> {
  const scope = chatScope(exchange.request.headers, exchange.caller);
  const body = decode(exchange.body);
  const key = text(body, 'idempotency_key');
  if (key === '') throw new CoderError(400, 'Idempotency key is required.');
  const name = signalName(body);
  const { processes } = await host.list(scope.owner, { key, limit: 1 });
  const [process] = processes;
  if (!process && pending.has(scope.owner, key)) {
    const message = 'The start holding this idempotency key has not spawned its process yet.';
    throw new CoderError(409, message, { code: 'start_pending' }, 'key_conflict');
  }
  if (!process) {
    throw new CoderError(404, 'No process was started with this idempotency key.', {
      code: 'process_key_not_found',
    });
  }
  const refusal = new CoderError(
    409,
    'The process started with this idempotency key is not running.',
    { code: 'not_running' },
  );
  await send(host, process, name, refusal);
  return { message: `Signal ${quoteGo(name)} sent.` };
}

async function send(
  host: HostApi,
  process: ProcessInfo,
  name: keyof typeof SIGNALS,
  refusal: CoderError,
): Promise<void> {
  if (process.settled) throw refusal;
  try {
    const id = process.id;
    await host.signal(process.owner, {
      id,
      signal: SIGNALS[name],
      by: 'coder api',
    });
  } catch (error) {
    throw error instanceof HoldfastError && error.code === 'not_running' ? refusal : error;
  }
}

function find(host: HostApi, scope: ChatScope, id: string): Promise<ProcessInfo> {
  return asOwner(scope, id, (owner) => host.get(owner, { id }));
}

/** Its own; with a full token also those of nobody, and without a chat header everybody's. */
async function asOwner<T>(
  scope: ChatScope,
  id: string,
  ask: (owner: Owner) => Promise<T>,
): Promise<T> {
  const owners = scope.compat ? (scope.chat ? [scope.owner, NO_CHAT] : ['*']) : [scope.owner];
  for (const owner of owners) {
    try {
      return await ask(owner);
    } catch (error) {
      if (!(error instanceof HoldfastError) || error.code !== 'not_found') throw error;
    }
  }
  throw new CoderError(404, `Process ${quoteGo(id)} not found.`);
}

async function existsForOthers(host: HostApi, scope: ChatScope, id: string): Promise<boolean> {
  if (!scope.compat) return true;
  return find(host, { owner: '*', compat: true }, id).then(
    () => true,
    () => false,
  );
}

function describe(process: ProcessInfo): Record<string, unknown> {
  return {
    id: process.id,
    command: process.command,
    workdir: process.cwd,
    background: process.labels?.['background'] === 'true',
    ...coderEnding(process),
    started_at_unix: seconds(process.startedAtMs),
    ...(process.exitedAtMs !== undefined && { exited_at_unix: seconds(process.exitedAtMs) }),
  };
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000);
}
