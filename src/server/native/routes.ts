// The native dialect, /v1: what each operation calls on the host. It translates and decides nothing.

import { stripAnsi } from '../../base/bytes/ansi.ts';
import { listAll } from '../../protocol/list-all.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { EVERYONE, type HostApi, type Owner, type Results } from '../../protocol/host-api.ts';
import type { Params } from '../../protocol/operations.ts';
import type { PageSessions } from '../dashboard/page-sessions.ts';
import { hostRow, type FleetHostRow } from '../fleet-door.ts';
import type { Handover } from '../handover.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { prometheusText } from '../telemetry/prometheus.ts';
import type { Calls, NativeCall } from './call.ts';
import { download } from './download.ts';
import { nativePage } from './events.ts';
import { followCompletions, followProcess } from './follow.ts';
import { invalid, parseBody, parseQuery } from './input.ts';
import {
  nativeOperations,
  type Body,
  type NativeName,
  type NativeOperation,
} from './operations.ts';
import { nativeOwner } from './owner.ts';
import { searchCalls } from '../dashboard/search-calls.ts';
import { tokenCalls, type TokensOption } from '../dashboard/token-operations.ts';
import { sessionCalls } from '../dashboard/session-calls.ts';
import { sharedOperations } from '../dashboard/shared-operations.ts';
import { timelineCalls } from '../dashboard/timeline-operations.ts';
import { watchRow, type WatchOptions } from '../dashboard/watch/watch.ts';
import { openApi } from './openapi.ts';
import type { Exchange, Route, SocketRow } from '../http/router.ts';
import { LARGE_BYTES } from '../http/unread-answers.ts';
import { HEARTBEAT_MS } from '../http/sse.ts';
import type { StartRate } from '../start-rate.ts';
import { attachRow } from './terminals/attach.ts';
import { terminalCalls } from './terminals/calls.ts';
import type { TerminalCallOptions } from '../../terminals/in-process-terminals.ts';

export interface NativeOptions extends TerminalCallOptions, WatchOptions, TokensOption {
  readonly metrics: Metrics;
  /** The folder whose disk is measured; none where a fleet is served. */
  readonly home?: string | undefined;
  readonly startRate: StartRate;
  readonly maxBodyBytes: number;
  readonly pages: PageSessions;
  /** Lets the keeper answer waiting clients, if it can. */
  readonly handover?: Handover;
  readonly heartbeatMs?: number | undefined;
  /** Of a fleet; none where one keeper is served. */
  readonly hosts?: () => readonly FleetHostRow[];
}

/** The default timeout of `/v1/run`. */
const RUN_MS = 60_000;
/** How long to wait after the exit for output that descendants still write. */
const DRAIN_MS = 100;

export function nativeRoutes(options: NativeOptions): Route[] {
  const calls: Calls = {
    ...startCalls(options),
    ...outputCalls(options),
    ...inputCalls(options),
    ...leaseCalls(options),
    ...feedCalls(options),
    ...serverCalls(options),
    ...sessionCalls(options),
    ...tokenCalls(options),
    ...searchCalls(options),
    ...timelineCalls(options),
    ...terminalCalls(options),
  };
  const sockets: Readonly<Record<string, SocketRow>> = {
    attachTerminal: attachRow(options),
    watch: watchRow(options),
  };
  return Object.entries<NativeOperation>(nativeOperations).map(([name, operation]) => {
    const call = calls[name as NativeName] as (call: NativeCall<NativeName>) => Promise<unknown>;
    const { method, path } = operation;
    const handler = async (exchange: Exchange) => call(parseCall(exchange, operation));
    const socket = sockets[name];
    const shared = sharedOperations.has(name) && ({ shared: true } as const);
    const rights = { ...(operation.anonymous && { anonymous: true as const }), ...shared };
    return { method, path, handler, ...rights, ...(socket && { socket }) };
  });
}

function parseCall(exchange: Exchange, { query, body }: NativeOperation): NativeCall<NativeName> {
  return {
    exchange,
    owner: nativeOwner(exchange),
    id: exchange.params['id'] ?? '',
    query: parseQuery(query, exchange.query),
    body: (body && parseBody(body, exchange.body)) as Body<NativeName>,
  };
}

function startCalls({ host, startRate, handover }: NativeOptions) {
  return {
    start: async ({ exchange, owner, body }) => {
      await startRate.admit(exchange.caller);
      const started = { op: 'start', params: body, render: 'json' } as const;
      const waits = (body.waitMs ?? 0) > 0;
      if (waits && (await handover?.tryAnswer(exchange, owner.starts, started)) === true)
        return undefined;
      return host.start(owner.starts, body, exchange.gone);
    },
    run: async ({ exchange, owner, body: { timeoutMs = RUN_MS, maxBytes, clean, ...spec } }) => {
      await startRate.admit(exchange.caller);
      const begun = await host.start(owner.starts, { ...spec, waitMs: timeoutMs }, exchange.gone);
      const { process, attached } = begun;
      // The start has waited, unless the process existed before: then the text waits.
      const wait = attached ? { waitMs: timeoutMs } : {};
      const wanted = { id: process.id, maxBytes, drainMs: DRAIN_MS, ...wait };
      const shown = withCleanText(await host.text(process.owner, wanted, exchange.gone), clean);
      return { ...shown, attached, timedOut: shown.process.outcome === undefined };
    },
    list: ({ owner, query: { owner: _owner, ...filter } }) => host.list(owner.sees, filter),
    get: ({ owner, id }) => host.get(owner.sees, { id }),
    remove: ({ owner, id, query: { force } }) => host.remove(owner.sees, { id, force }),
    prune: async ({ owner }) => ({ removed: await prune(host, owner.sees) }),
  } satisfies Partial<Calls>;
}

/** Stops nothing. A process with live descendants is kept, because it is the way to find them. */
async function prune(host: HostApi, owner: Owner): Promise<number> {
  const processes = await listAll((page) => host.list(owner, page));
  const ended = processes.filter(
    ({ state, settled }) => settled && (state === 'closed' || state === 'lost'),
  );
  const removals = ended.map(async (process) => {
    try {
      await host.remove(process.owner, { id: process.id });
      return 1;
    } catch (error) {
      if (error instanceof HoldfastError && error.code === 'not_found') return 0;
      throw error;
    }
  });
  return (await Promise.all(removals)).reduce<number>((total, each) => total + each, 0);
}

function outputCalls(options: NativeOptions) {
  const { host } = options;
  return {
    text: async ({ exchange, owner, id, query: { owner: _owner, clean, ...wanted } }) => {
      await beginLarge(exchange, wanted.maxBytes);
      return withCleanText(await host.text(owner.sees, { id, ...wanted }, exchange.gone), clean);
    },
    events: async ({ exchange, owner, id, query: { owner: _owner, ...page } }) => {
      await beginLarge(exchange, page.maxBytes);
      return nativePage(await host.read(owner.sees, { id, ...page }, exchange.gone));
    },
    bytes: ({ exchange, owner, id, query: { offset = 0, maxBytes } }) =>
      download(exchange, { owner: owner.sees, id, offset, maxBytes }, host),
    follow: ({ exchange, owner, id, query: { after } }) =>
      followProcess(exchange, { owner: owner.sees, id, after }, followOptions(options)),
    search: ({ exchange, owner, id, query: { owner: _owner, ...search } }) =>
      host.search(owner.sees, { id, ...search }, exchange.gone),
    ports: ({ owner, id }) => host.ports(owner.sees, { id }),
  } satisfies Partial<Calls>;
}

/** Small answers are made whatever waits to be read. */
async function beginLarge(exchange: Exchange, maxBytes = 0): Promise<void> {
  if (maxBytes > LARGE_BYTES) await exchange.unread.begin(exchange);
}

function withCleanText(shown: Results['text'], clean: boolean | undefined): Results['text'] {
  return clean === true ? { ...shown, text: stripAnsi(shown.text) } : shown;
}

function followOptions({ host, heartbeatMs = HEARTBEAT_MS }: NativeOptions) {
  return { host, heartbeatMs };
}

function inputCalls({ host, handover }: NativeOptions) {
  const wait = async (exchange: Exchange, owner: Owner, params: Params<'wait'>) => {
    const handedOver = await handover?.tryAnswer(exchange, owner, {
      op: 'wait',
      params,
      render: 'json',
    });
    if (handedOver === true) return undefined;
    return host.wait(owner, params, exchange.gone);
  };
  return {
    stdin: async ({ owner, id, body: { text, base64, eof, writeId } }) => {
      if (text !== undefined && base64 !== undefined)
        throw invalid('is given together with "text"', 'base64');
      if (text === undefined && base64 === undefined && eof !== true)
        throw invalid('There is nothing to write: give "text", "base64" or "eof".');
      const data = base64 === undefined ? Buffer.from(text ?? '') : Buffer.from(base64, 'base64');
      return host.write(owner.sees, { id, data, eof, writeId });
    },
    resize: ({ owner, id, body: { size } }) => host.resize(owner.sees, { id, size }),
    signal: ({ owner, id, body }) => {
      const by = body.by ?? (owner.sees === EVERYONE ? 'api' : owner.sees);
      return host.signal(owner.sees, { id, ...body, by });
    },
    waitOne: ({ exchange, owner, id, body: { for: given, timeoutMs } }) => {
      const conditions = (typeof given === 'string' ? [given] : given).map((each) =>
        typeof each === 'string' ? { kind: each } : each,
      );
      return wait(exchange, owner.sees, { waits: [{ id, for: conditions }], timeoutMs });
    },
    wait: ({ exchange, owner, body }) => wait(exchange, owner.sees, body),
  } satisfies Partial<Calls>;
}

/** Leases belong to the owner of the processes that are started under them. */
function leaseCalls({ host }: NativeOptions) {
  const nameOf = ({ params }: Exchange): string => params['name'] ?? '';
  return {
    holdLease: ({ exchange, owner, body: { ttlMs } }) =>
      host.holdLease(owner.starts, { name: nameOf(exchange), ttlMs }),
    endLease: ({ exchange, owner }) =>
      host.holdLease(owner.starts, { name: nameOf(exchange), ttlMs: 0 }),
  } satisfies Partial<Calls>;
}

function feedCalls(options: NativeOptions) {
  const { host } = options;
  return {
    completions: ({ exchange, owner, query: { owner: _owner, ...wanted } }) =>
      host.completions(owner.sees, wanted, exchange.gone),
    followCompletions: ({ exchange, owner, query: { subscriber, after } }) =>
      followCompletions(exchange, { owner: owner.sees, subscriber, after }, followOptions(options)),
    attention: ({ owner, query: { quietMs } }) => host.attention(owner.sees, { quietMs }),
    tree: ({ owner, id }) => host.tree(owner.sees, { id }),
    dismiss: ({ owner, id }) => host.dismiss(owner.sees, { id }),
    acknowledge: ({ owner, body }) => host.acknowledge(owner.sees, body),
  } satisfies Partial<Calls>;
}

function serverCalls({ host, metrics, startRate, maxBodyBytes, hosts, home }: NativeOptions) {
  let made: string | undefined;
  const description = (): string => (made ??= `${JSON.stringify(openApi())}\n`);
  return {
    owners: ({ owner }) => host.owners(owner.sees, {}),
    hosts: async ({ exchange }) => {
      if (!exchange.caller.admin)
        throw new HoldfastError('forbidden', 'The hosts are for the admin token.');
      const rows = hosts?.() ?? [];
      return { hosts: rows.map(hostRow).sort((a, b) => (a.name < b.name ? -1 : 1)) };
    },
    limits: async ({ owner }) => {
      const { perSecond, burst } = startRate.options;
      const server = { maxBodyBytes, startsPerSecond: perSecond, startsAtOnce: burst };
      return {
        host: await host.limits(owner.sees, {}),
        server,
        enforcement: await host.enforcement(owner.sees, {}),
      };
    },
    health: async ({ exchange, owner }) => {
      const health = await host.health(owner.sees, {});
      const { measured: _measured, ...figures } = health;
      const { version, uptimeMs, children } = health;
      return exchange.caller.admin ? figures : { version, uptimeMs, children };
    },
    metrics: async ({ exchange, owner }) => {
      if (!exchange.caller.admin)
        throw new HoldfastError('forbidden', 'The figures are for the admin token.');
      const measured = { host, owner: owner.sees, home, hosts };
      const text = prometheusText(await metrics.families(measured));
      sendText(exchange, nativeOperations.metrics.media, text);
    },
    openapi: async ({ exchange }) =>
      sendText(exchange, nativeOperations.openapi.media, description()),
  } satisfies Partial<Calls>;
}

function sendText({ response }: Exchange, media: string, text: string): void {
  response.writeHead(200, {
    'Content-Type': media,
    'Content-Length': Buffer.byteLength(text),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  });
  response.end(text);
}
