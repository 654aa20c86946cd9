// `holdfast shutdown`

import type { CloseReport } from '../../protocol/host-api.ts';
import type { Caller } from '../caller.ts';
import type { Answer, Command } from '../arguments/command.ts';
import { endKeeper, refuseInside } from '../local/keeper.ts';
import { endAnyServer } from '../local/server.ts';
import { leftOver } from '../output/signal-words.ts';
import { quote } from '../output/terminal-text.ts';
import { plural } from '../arguments/units.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'shutdown',
  usage: '[--grace 5s]',
  summary: summaries.shutdown,
  examples: ['holdfast shutdown', 'holdfast shutdown --grace 30s'],
  options: {
    grace: { type: 'string', value: '5s', about: 'how long to wait before KILL (default 5s)' },
  },
  notes: [
    'Exit code 1: something survived or could not be checked; it is named.',
    '"holdfast exec-server" and "holdfast mcp" keep running; their next request starts a new keeper.',
  ],
  read({ words, caller }) {
    words.expect();
    const graceMs = words.durationMs('grace');
    return () => shutdown(caller, graceMs);
  },
};

/** Each process gets SIGTERM, a grace period and SIGKILL; then the keeper exits. */
async function shutdown(caller: Caller, graceMs?: number): Promise<Answer> {
  const { home } = caller;
  await refuseInside(caller);
  const server = await endAnyServer(home);
  const serverLines = server === undefined ? [] : [`The server (pid ${server.pid}) is gone.`];
  const keeper = await endKeeper(caller, graceMs);
  const about = { home, ...(server && { server: server.pid }) };
  if (!keeper) {
    const lines = [...serverLines, `No keeper is running for ${home}.`];
    return { result: { stopped: false, ...about }, lines };
  }
  const { pid, report } = keeper;
  return {
    result: { stopped: true, ...about, pid, ...report },
    lines: [...serverLines, ...lines(pid, report)],
    exitCode: report && report.survivors.length + report.problems.length === 0 ? 0 : 1,
  };
}

function lines(pid: number, report: CloseReport | undefined): string[] {
  if (!report) return [`The keeper (pid ${pid}) is gone. It did not report what it ended.`];
  const { ended, strays = 0, survivors, problems } = report;
  const what =
    ended + strays + survivors.length === 0
      ? 'no process was running'
      : `${plural(ended, 'process', 'processes')} ended`;
  const orphans =
    strays === 0 ? '' : `, and ${plural(strays, 'orphan', 'orphans')} of unknown processes`;
  return [
    `The keeper (pid ${pid}) is gone; ${what}${orphans}.`,
    ...survivors.map(
      (survivor) => `SURVIVED: ${leftOver(survivor)}, of process ${quote(survivor.id)}`,
    ),
    ...problems.map((problem) => `NOT DONE: ${quote(problem)}`),
  ];
}
