// `tty home list`, `home forget`

import { listAll } from '../../../protocol/list-all.ts';
import { resolve } from 'node:path';
import { Caller } from '../../caller.ts';
import type { TtyAnswer, TtyCall, TtyCommand } from '../command.ts';
import { HomeRegistry, type KnownHome } from '../home-registry.ts';
import { statusOf } from '../sessions.ts';

export const homeList: TtyCommand = {
  name: 'home list',
  usage: '[--all]',
  summary: 'List the state directories that have had sessions.',
  examples: ['holdfast tty home list'],
  options: { all: { type: 'boolean', about: 'also those without a running session' } },
  async run(call): Promise<TtyAnswer> {
    call.expect();
    const known = new HomeRegistry(call.caller.env).all();
    const counted = await Promise.all(known.map((home) => count(call, home)));
    const homes = call.flag('all')
      ? counted
      : counted.filter(({ activeSessions }) => activeSessions > 0);
    const lines = homes.map((home) =>
      [home.path, home.activeSessions, home.totalSessions ?? '?', home.lastSeenAt].join('\t'),
    );
    return { result: { homes }, lines };
  },
};

/** Starts no keeper: where none runs no session is alive, and the number of stored ones is unknown. */
async function count({ caller: { env, cwd } }: TtyCall, { path, lastSeenAt }: KnownHome) {
  const caller = new Caller({ env, cwd, home: path, owner: undefined });
  try {
    const host = await caller.running().catch(() => undefined);
    if (!host) return { path, activeSessions: 0, totalSessions: null, lastSeenAt };
    const processes = await listAll((page) => host.list(caller.sees, page));
    const terminals = processes.filter(({ streams }) => streams === 'pty');
    const active = terminals.filter((each) => statusOf(caller, each) === 'running');
    return {
      path,
      activeSessions: active.length,
      totalSessions: terminals.length,
      lastSeenAt,
    };
  } finally {
    await caller.close();
  }
}

export const homeForget: TtyCommand = {
  name: 'home forget',
  usage: 'PATH',
  summary: 'Take a state directory off the list. Nothing in it is touched.',
  examples: ['holdfast tty home forget /tmp/old-home'],
  options: {},
  run: async (call): Promise<TtyAnswer> => {
    const [given = ''] = call.expect('PATH');
    const path = resolve(call.caller.cwd, given);
    const forgotten = new HomeRegistry(call.caller.env).forget(path);
    return {
      result: { path, forgotten },
      lines: [forgotten ? `${path} forgotten` : `${path} was not known`],
    };
  },
};
