// `holdfast upgrade`

import { VERSION } from '../../base/version.ts';
import { plural } from '../arguments/units.ts';
import type { Answer, Command } from '../arguments/command.ts';
import type { Caller } from '../caller.ts';
import { isOlderBuild } from '../local/keeper-age.ts';
import { restartServer } from '../local/restart-server.ts';
import { localServer } from '../local/server.ts';
import { alignedRows } from '../output/table.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'upgrade',
  usage: '[--check]',
  summary: summaries.upgrade,
  examples: ['holdfast upgrade --check', 'holdfast upgrade'],
  options: {
    check: { type: 'boolean', about: 'change nothing: only say what runs and what is installed' },
  },
  notes: [
    'Installs nothing: npm does that. Ends no process: an older keeper goes on until it has none.',
    'Exit code 1: something that runs is older than what is installed.',
  ],
  read({ words, caller }) {
    words.expect();
    const isCheck = words.flag('check');
    return async () => {
      const found = await lookAround(caller);
      if (isCheck || found.server?.olderBuild !== true) return answer(found);
      await restartServer(caller, () => undefined);
      return answer(await lookAround(caller), found.server);
    };
  },
};

interface Program {
  readonly version: string;
  readonly pid: number;
  readonly olderBuild: boolean;
}
interface Found {
  readonly server: Program | undefined;
  readonly keeper: (Program & { readonly live: number }) | undefined;
}

async function lookAround(caller: Caller): Promise<Found> {
  const server = await localServer(caller.home);
  const host = await caller.running();
  const keeper = await host?.health(caller.sees, {});
  return {
    server: server && {
      version: server.version ?? 'an earlier version',
      pid: server.pid,
      olderBuild: isOlderBuild(server.startedAtMs ?? 0),
    },
    keeper: keeper && {
      version: keeper.version,
      pid: keeper.pid,
      olderBuild: isOlderBuild(Date.now() - keeper.uptimeMs),
      live: keeper.live,
    },
  };
}

function answer({ server, keeper }: Found, replaced?: Program): Answer {
  const isCurrent = server?.olderBuild !== true && keeper?.olderBuild !== true;
  const rows = [
    ['installed', VERSION],
    ['server', describe(server, '"holdfast upgrade" replaces it, and ends no process')],
    ['keeper', describe(keeper, keeper && replaceKeeper(keeper.live))],
  ];
  return {
    result: {
      installed: VERSION,
      current: isCurrent,
      ...(server && { server }),
      ...(keeper && { keeper }),
      ...(replaced && { replaced: replaced.pid }),
    },
    lines: [
      ...alignedRows(rows, Infinity),
      ...(replaced ? [`The server (pid ${replaced.pid}) was replaced.`] : []),
    ],
    exitCode: isCurrent ? 0 : 1,
  };
}

function describe(program: Program | undefined, remedy = ''): string {
  if (!program) return 'not running';
  const { version, pid, olderBuild } = program;
  return `${version}, pid ${pid}${olderBuild ? `; an older build than this command: ${remedy}` : ''}`;
}

function replaceKeeper(live: number): string {
  if (live === 0) return '"holdfast shutdown" ends it; the next command starts the new one';
  return `it has ${plural(live, 'process', 'processes')}; when they have ended, "holdfast shutdown"`;
}
