// `holdfast status`

import { join } from 'node:path';
import { errors } from '../../protocol/errors.ts';
import type { Answer, Command } from '../arguments/command.ts';
import { olderBuild } from '../local/keeper-age.ts';
import { localServer } from '../local/server.ts';
import { STATE_LOG } from '../../keeper/home.ts';
import { alignedRows } from '../output/table.ts';
import { formatBytes, formatDuration } from '../arguments/units.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'status',
  usage: '',
  summary: summaries.status,
  options: {},
  notes: [`Exit code ${errors.keeper_unreachable.exit}: no keeper is running. Never starts one.`],
  read({ words, caller }) {
    words.expect();
    return async (): Promise<Answer> => {
      const { home } = caller;
      const server = await localServer(home);
      const served = server ? `${server.url}, pid ${server.pid}` : 'not running';
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
      const stateLog = join(home, STATE_LOG);
      const rows = [
        ['keeper', `${health.version}, pid ${health.pid}, for ${formatDuration(health.uptimeMs)}`],
        ...(older === undefined ? [] : [['', older]]),
        ['server', served],
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
        ['state log', stateLog],
        ['children', health.children === 'posix' ? 'by posix_spawn' : 'by child_process'],
      ];
      return {
        result: {
          running: true,
          home,
          log,
          stateLog,
          ...health,
          ...(server && { server }),
          olderBuild: older !== undefined,
        },
        lines: alignedRows(rows, Infinity),
      };
    };
  },
};
