// All routes of the server. The dialects share a host, a clock and the start rate.

import type { Clock } from '../base/clock.ts';
import { sharePromise } from '../base/once.ts';
import { coderRoutes } from './coder/routes.ts';
import { codexRelay } from './codex/relay.ts';
import { codexRoute, relayedCodexRoute } from './codex/route.ts';
import type { PageSessions } from './dashboard/page-sessions.ts';
import { docsRoutes } from './dashboard/docs.ts';
import { dashboardRoutes } from './dashboard/routes.ts';
import { e2bRoutes } from './e2b/routes.ts';
import type { FleetDoor } from './fleet-door.ts';
import { Handover } from './handover.ts';
import { mcpRoutes } from './mcp/routes.ts';
import { nativeRoutes, type NativeOptions } from './native/routes.ts';
import { readyRoute } from './ready-route.ts';
import type { Caller } from './http/gate.ts';
import type { Route, SocketOpener } from './http/router.ts';
import { lazyModules } from './lazy-modules.ts';
import { StartRate, type StartRateOptions } from './start-rate.ts';
import type { ReconnectingHost } from './reconnecting-host.ts';
import { Terminals } from '../terminals/terminals.ts';

export interface DialectOptions {
  readonly host: ReconnectingHost;
  readonly metrics: NativeOptions['metrics'];
  readonly clock: Clock;
  readonly report: (message: string) => void;
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly maxBodyBytes: number;
  readonly pages: PageSessions;
  readonly tokens: NativeOptions['tokens'];
  readonly bearer: NativeOptions['bearer'];
  readonly defaultDirectory?: string | undefined;
  readonly heartbeatMs?: number | undefined;
  readonly startRate?: StartRateOptions | undefined;
  /** Whether a scoped token is neither revoked nor expired. */
  readonly isValid?: (tokenId: string) => boolean;
  /** How long a codex session outlives its connection. */
  readonly detachMs?: number | undefined;
  readonly handOver?: boolean | undefined;
  readonly bubblewrap?: string | undefined;
  readonly gateway?: FleetDoor | undefined;
}

export interface Dialects {
  readonly routes: Route[];
  /** The host for callers that come by no route, such as the gateways of a fleet. */
  readonly host: ReconnectingHost;
  /** To be called before the doors are closed: waits at the keeper stay there. */
  beginClosing(): void;
  close(): Promise<void>;
}

const NO_HANDOVER =
  'This Node does not let the keeper answer waiting clients: the server answers them itself.';

function codexLoader(
  { host, clock, report, home, env, detachMs, defaultDirectory, bubblewrap }: DialectOptions,
  startRate: StartRate,
): () => Promise<SocketOpener> {
  return sharePromise(async () => {
    const { codexOpener, codexOptions } = await lazyModules.codex();
    const cwd = defaultDirectory === undefined ? {} : { cwd: defaultDirectory };
    const countStart = (caller: Caller): void => void startRate.take(caller);
    return codexOpener(
      codexOptions({ host, clock, home, env, report, detachMs, bubblewrap, ...cwd, countStart }),
    );
  });
}

export async function openDialects(options: DialectOptions): Promise<Dialects> {
  const { host, clock, report, home, env, metrics, pages, tokens, bearer } = options;
  const { defaultDirectory, heartbeatMs, maxBodyBytes, gateway } = options;
  const startRate = new StartRate(clock, options.startRate);
  // The server of each host answers the queries of its terminals.
  const terminals = new Terminals(host, clock, home, { answers: !gateway });
  const shell = env['SHELL'] || '/bin/sh';
  const mcp = mcpRoutes({
    host,
    home,
    maxBodyBytes,
    clock,
    terminals,
    shell,
    startRate,
    isValid: options.isValid,
    defaultDirectory,
    heartbeatMs,
    report,
  });
  const handOver = options.handOver !== false && !gateway;
  const handover = new Handover(host, handOver);
  if (handOver && !handover.isOn) report(NO_HANDOVER);
  const shared = { host, clock, handover, startRate };
  const routes = [
    readyRoute,
    ...dashboardRoutes,
    ...docsRoutes,
    // Their files would be those of the gateway's machine.
    gateway
      ? relayedCodexRoute('/codex', codexRelay(gateway, clock))
      : codexRoute('/codex', codexLoader(options, startRate)),
    ...(gateway ? [] : e2bRoutes({ ...options, startRate, handover })),
    ...coderRoutes({ ...shared, defaultDirectory }),
    ...nativeRoutes({
      ...shared,
      metrics,
      terminals,
      shell,
      heartbeatMs,
      maxBodyBytes,
      pages,
      tokens,
      bearer,
      home: gateway ? undefined : home,
      hosts: () => gateway?.hosts() ?? [],
    }),
    ...mcp.routes,
  ];
  if (!gateway) await terminals.answerQueriesOfAll();
  const close = async (): Promise<void> => {
    await mcp.close();
    await terminals.close();
  };
  return {
    routes,
    host: answeringHost(host, terminals),
    beginClosing: () => handover.beginClosing(),
    close,
  };
}

/** The queries of a terminal that was opened elsewhere are answered here, where its output is. */
function answeringHost(host: ReconnectingHost, terminals: Terminals): ReconnectingHost {
  return {
    ...host,
    start: async (owner, params, signal) => {
      const started = await host.start(owner, params, signal);
      const { process } = started;
      // A terminal that cannot be shown has been started all the same: the next look at it has the error.
      if (process.terminal && process.state === 'running')
        terminals.of(process).catch(() => undefined);
      return started;
    },
  };
}
