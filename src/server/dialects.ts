// All routes of the server. The dialects share a host, a clock and the start rate.

import type { Clock } from '../base/clock.ts';
import { sharePromise } from '../base/once.ts';
import { coderRoutes } from './coder/routes.ts';
import { codexRoute } from './codex/route.ts';
import type { PageSessions } from './dashboard/page-sessions.ts';
import { dashboardRoutes } from './dashboard/routes.ts';
import { Handover } from './handover.ts';
import { mcpRoutes } from './mcp/routes.ts';
import { nativeRoutes, type NativeOptions } from './native/routes.ts';
import { readyRoute } from './ready-route.ts';
import type { Caller } from './http/gate.ts';
import type { Route } from './http/router.ts';
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
  readonly bearer: NativeOptions['bearer'];
  readonly defaultDirectory?: string | undefined;
  readonly heartbeatMs?: number | undefined;
  readonly startRate?: StartRateOptions | undefined;
  /** Whether a scoped token is neither revoked nor expired. */
  readonly isValid?: (tokenId: string) => boolean;
  /** How long a codex session outlives its connection. */
  readonly detachMs?: number | undefined;
}

export interface Dialects {
  readonly routes: Route[];
  /** To be called before the doors are closed: waits at the keeper stay there. */
  beginClosing(): void;
  close(): Promise<void>;
}

const NO_HANDOVER =
  'This Node does not let the keeper answer waiting clients: the server answers them itself.';

export async function openDialects(options: DialectOptions): Promise<Dialects> {
  const { host, clock, report, home, env, metrics, pages, bearer } = options;
  const { defaultDirectory, heartbeatMs, detachMs, maxBodyBytes } = options;
  const startRate = new StartRate(clock, options.startRate);
  const openCodex = sharePromise(async () => {
    const { codexOpener, codexOptions } = await lazyModules.codex();
    const cwd = defaultDirectory === undefined ? {} : { cwd: defaultDirectory };
    const countStart = (caller: Caller): void => void startRate.take(caller);
    return codexOpener(
      codexOptions({ host, clock, home, env, report, detachMs, ...cwd, countStart }),
    );
  });
  const terminals = new Terminals(host, clock, home);
  const shell = env['SHELL'] || '/bin/sh';
  const mcp = mcpRoutes({
    host,
    clock,
    terminals,
    shell,
    startRate,
    isValid: options.isValid,
    defaultDirectory,
    heartbeatMs,
    report,
  });
  const handOver = env['HOLDFAST_HANDOVER'] !== 'off';
  const handover = new Handover(host, handOver);
  if (handOver && !handover.isOn) report(NO_HANDOVER);
  const routes = [
    readyRoute,
    ...dashboardRoutes,
    codexRoute('/codex', openCodex),
    ...coderRoutes({ host, clock, handover, startRate, defaultDirectory }),
    ...nativeRoutes({
      clock,
      host,
      handover,
      metrics,
      terminals,
      shell,
      heartbeatMs,
      startRate,
      maxBodyBytes,
      pages,
      bearer,
    }),
    ...mcp.routes,
  ];
  await terminals.answerQueriesOfAll();
  const close = async (): Promise<void> => {
    await mcp.close();
    await terminals.close();
  };
  return { routes, beginClosing: () => handover.beginClosing(), close };
}
