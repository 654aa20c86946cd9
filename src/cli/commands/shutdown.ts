// `holdfast shutdown`

import type { KeeperLink } from '../../keeper/link.ts';
import { isError, type Caller } from '../caller.ts';
import type { Answer, Command } from '../command.ts';
import { endServer, gone } from '../local-server.ts';
import { plural } from '../units.ts';

export const command: Command = {
  name: 'shutdown',
  usage: '',
  summary: 'End every process, the keeper and the server. Output and outcomes stay readable.',
  options: {},
  async run({ words, caller }) {
    words.exactly(0, 0);
    return shutdown(caller);
  },
};

/** Each process gets TERM, then the grace (the keeper's own unless one is given), then KILL; then the keeper leaves. */
export async function shutdown(caller: Caller, graceMs?: number): Promise<Answer> {
  const { home } = caller;
  const server = await endServer(home);
  const told = server === undefined ? [] : [`The server (pid ${server.pid}) is gone.`];
  const host = await caller.running();
  if (!host) {
    const lines = [...told, `No keeper is running for ${home}.`];
    return { result: { stopped: false, home, ...(server && { server: server.pid }) }, lines };
  }
  const { live } = await host.health(caller.sees, {});
  const { pid } = host.keeper;
  if (graceMs !== undefined) await terminateAll(caller, host, graceMs);
  await host.stop();
  // It has let go of everything; what is told is that it is gone.
  await gone(pid);
  const ended =
    live === 0 ? 'no process was running' : `${plural(live, 'process', 'processes')} ended`;
  return {
    result: { stopped: true, home, pid, ended: live, ...(server && { server: server.pid }) },
    lines: [...told, `The keeper (pid ${pid}) is gone; ${ended}.`],
  };
}

async function terminateAll(caller: Caller, host: KeeperLink, graceMs: number): Promise<void> {
  const { processes } = await host.list(caller.sees, {});
  const ends = processes
    .filter(({ settled }) => !settled)
    .map(({ id, owner }) =>
      host
        .signal(owner, { id, signal: 'terminate', by: caller.name, graceMs })
        .catch((error: unknown) => {
          if (!isError(error, 'not_running', 'not_found')) throw error;
        }),
    );
  await Promise.all(ends);
}
