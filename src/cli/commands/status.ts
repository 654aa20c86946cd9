// `holdfast status`

import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { VERSION } from '../../base/version.ts';
import { errors } from '../../protocol/errors.ts';
import type { Answer, Command } from '../arguments/command.ts';
import { callServer } from '../local/call-server.ts';
import { isOlderBuild, olderBuild } from '../local/keeper-age.ts';
import { localServer, type LocalServer } from '../local/server.ts';
import { alignedRows } from '../output/table.ts';
import { formatBytes, formatDuration } from '../arguments/units.ts';
import { summaries } from '../summaries.ts';

/** A server that serves answers within this, on a busy machine too. */
const ANSWER_MS = 5000;

export const command: Command = {
  name: 'status',
  usage: '',
  summary: summaries.status,
  examples: ['holdfast status', 'holdfast status --json'],
  options: {},
  notes: [
    'Shows what runs and what is installed, and asks both keeper and server: fit for a health check.',
    `Exit code ${errors.keeper_unreachable.exit}: no keeper is running. ${errors.not_answering.exit}: the server does not answer, or "up" has none.`,
    'Never starts one.',
  ],
  read({ words, caller }) {
    words.expect();
    return async (): Promise<Answer> => {
      const { home } = caller;
      const server = await askedServer(home);
      const served = server ? describeServer(server) : 'not running';
      const host = await caller.running();
      if (!host) {
        const lines = [
          `No keeper is running for ${home}. The next command that needs one starts it.`,
          ...(server ? [`The server: ${served}.`] : []),
        ];
        return {
          result: { running: false, home, ...(server && { server }) },
          lines,
          exitCode: errors.keeper_unreachable.exit,
        };
      }
      const health = await host.health(caller.sees, {});
      const log = join(home, 'keeper.log');
      const older = olderBuild(health.uptimeMs);
      const serverLog = join(home, 'server.log');
      const isServed = server ? server.answers : host.keeper.supervises !== true;
      const rows = [
        ['keeper', `${health.version}, pid ${health.pid}, for ${formatDuration(health.uptimeMs)}`],
        ...(older === undefined ? [] : [['', older]]),
        ['server', served],
        ['installed', VERSION],
        ['home', home],
        ['processes', `${health.live} live, ${health.ended} ended`],
        ['on disk', formatBytes(health.journalBytes)],
        ['memory', formatBytes(health.rssBytes)],
        ['waiting', `${health.parkedWaits}`],
        [
          'not stored',
          health.degraded === 0
            ? 'none'
            : `${health.degraded}: their output is in memory only; see ${log}`,
        ],
        ['logs', `${log}, ${serverLog}`],
        ['children', health.children === 'posix' ? 'by posix_spawn' : 'by child_process'],
      ];
      return {
        result: {
          running: true,
          home,
          log,
          serverLog,
          ...health,
          ...(server && { server }),
          installed: VERSION,
          olderBuild: older !== undefined,
        },
        lines: alignedRows(rows, Infinity),
        exitCode: isServed ? 0 : errors.not_answering.exit,
      };
    };
  },
};

type AskedServer = LocalServer & { readonly answers: boolean; readonly olderBuild: boolean };

/** A server that holds its lock may hang: it is asked, too, for what needs no keeper. */
async function askedServer(home: string): Promise<AskedServer | undefined> {
  const server = await localServer(home);
  if (!server) return undefined;
  const olderBuild = isOlderBuild(server.startedAtMs ?? 0);
  return { ...server, answers: await answersWithin(home, ANSWER_MS), olderBuild };
}

async function answersWithin(home: string, ms: number): Promise<boolean> {
  const late = new AbortController();
  const tooLate = pause(ms, false, { signal: late.signal }).catch(() => false);
  const asked = callServer(home, '/readyz').then(
    () => true,
    () => false,
  );
  try {
    return await Promise.race([asked, tooLate]);
  } finally {
    late.abort();
  }
}

function describeServer({ url, pid, version, answers, olderBuild }: AskedServer): string {
  const older = olderBuild
    ? '; an older build than this command: "holdfast restart" replaces it'
    : '';
  const silent = answers ? '' : '; it does not answer';
  return `${version ?? 'an earlier version'}, ${url}, pid ${pid}${silent}${older}`;
}
