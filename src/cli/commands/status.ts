// `holdfast status`

import { join } from 'node:path';
import { errors } from '../../protocol/errors.ts';
import type { Answer, Command } from '../command.ts';
import { alignedRows } from '../table.ts';
import { formatBytes, formatDuration } from '../units.ts';

export const command: Command = {
  name: 'status',
  usage: '',
  summary: 'Say whether a keeper is running, and how it is.',
  options: {},
  notes: [
    `Exits with ${errors.keeper_unreachable.exit} when no keeper is running; it never starts one.`,
  ],
  async run({ words, caller }): Promise<Answer> {
    words.exactly(0, 0);
    const { home } = caller;
    const host = await caller.running();
    if (!host) {
      const lines = [
        `No keeper is running for ${home}. The next command that needs one starts it.`,
      ];
      return { result: { running: false, home }, lines, exitCode: errors.keeper_unreachable.exit };
    }
    const health = await host.health(caller.sees, {});
    const log = join(home, 'keeper.log');
    const rows = [
      ['keeper', `${health.version}, pid ${health.pid}, for ${formatDuration(health.uptimeMs)}`],
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
      ['children', health.children === 'posix' ? 'by posix_spawn' : 'by child_process'],
    ];
    return { result: { running: true, home, log, ...health }, lines: alignedRows(rows, Infinity) };
  },
};
