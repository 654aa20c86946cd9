// The dialect of coder's workspace agent, /api/v0/processes: its fields, statuses, texts and leniency. It translates
// and decides nothing. Where coder's server is wrong, the host's behaviour is kept, and extra fields say more.

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
/** The longest `wait=true`; coder's clients ask again. */
const WAIT_MS = 300_000;
/** The shared wait has no timeout: each client has its own. */
const UNLIMITED_MS = Number.MAX_SAFE_INTEGER;
/** How long a start waits for an earlier start with the same key that has not spawned yet. */
const START_MS = 15_000;
/** Descendants of the shell may print after its exit, but coder's clients stop reading at `running: false`. */
const DRAIN_MS = 100;
const LIST_LIMIT = 10;
/** The same as coder's own server. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
const MINUTE = 60_000;
/** How long an exited process is kept: longer if its start may be repeated. */
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
  /** Lets the keeper answer waiting clients, if it can. */
  readonly handover?: Handover;
  /** For scoped tokens. The admin token is not limited, as with coder. */
  readonly startRate?: StartRate;
  /** The working directory of commands that name none; the user's home directory if it does not exist. */
  readonly defaultDirectory?: string | undefined;
}

interface OutputDeps {
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
    cwd: workdir || usableDirectory(options.defaultDirectory) || '~',
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
 * A configured directory that does not exist is ignored. A path that may hang is not checked here: the keeper probes it
 * with a time limit.
 */
function usableDirectory(folder: string | undefined): string | undefined {
  try {
    if (folder !== undefined && new Mounts(undefined).look().find(folder) === 'elsewhere')
      return folder;
    return folder !== undefined && statSync(folder).isDirectory() ? folder : undefined;
  } catch {
    return undefined;
  }
}

interface StartDeps extends CoderOptions {
  readonly pending: PendingKeys;
}

async function startAs(
  options: StartDeps,
  owner: Owner,
  spec: StartSpec,
): ReturnType<HostApi['start']> {
  try {
    return await startOnce(options, owner, spec);
  } catch (error) {
    if (!(error instanceof HoldfastError) || error instanceof CoderError) throw error;
    const { code, message } = error;
    if (code === 'key_conflict') {
      const text = 'Idempotency key was already used to start a process with different parameters.';
      throw new CoderError(409, text, { code: 'input_mismatch', detail: message }, code);
    }
    const detail = `start process: ${message}`;
    const retry = errors[code].retryable ? { code } : {};
    throw new CoderError(500, 'Failed to start process.', { detail, ...retry }, code);
  }
}

/** A repeated start with other ancestors is the same start: the ancestors of a chat do not affect what runs. */
async function startOnce(
  { host, clock, pending }: StartDeps,
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

/** The start that holds the key continues; only this client gets an error, and can retry. */
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

async function output(exchange: Exchange, { host, handover, waits }: OutputDeps): Promise<unknown> {
  const scope = chatScope(exchange.request.headers, exchange.caller);
  const id = exchange.params['id'] ?? '';
  if (exchange.query.get('wait') === 'true') {
    const params = { id, waitMs: WAIT_MS, drainMs: DRAIN_MS };
    const handedOver = await asOwner(scope, id, async (owner) =>
      handover?.tryAnswer(exchange, owner, { op: 'text', params, render: 'coder' }),
    );
    if (handedOver === true) return undefined;
    // All clients share one request to the host, which answers as soon as the shell has exited.
    const { chat, owner, compat } = scope;
    const key = JSON.stringify([id, owner, compat, chat !== undefined]);
    const patience = { timeoutMs: WAIT_MS, gone: exchange.gone };
    const answer = await waits.join(key, patience, async (gone) => {
      const ended = await snapshot(host, scope, id, { waitMs: UNLIMITED_MS, gone });
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
  { waitMs, gone }: { readonly waitMs: number; readonly gone: Exchange['gone'] },
): Promise<unknown> {
  const view = await asOwner(scope, id, (owner) =>
    host.text(owner, { id, waitMs, drainMs: DRAIN_MS }, gone),
  );
  return coderOutput(view);
}

async function signal(exchange: Exchange, host: HostApi): Promise<unknown> {
  const scope = chatScope(exchange.request.headers, exchange.caller);
  const id = exchange.params['id'] ?? '';
  // A process of another owner is not found whatever the body says; for an unknown one the body is checked first.
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

/** Its own processes. With the admin token also those without a chat, and without a chat header all. */
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
