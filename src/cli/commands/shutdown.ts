// `holdfast shutdown`

import type { Caller } from '../caller.ts';
import type { Answer, Command } from '../command.ts';
import { endServer } from '../local-server.ts';
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

export async function shutdown(caller: Caller): Promise<Answer> {
  const { home } = caller;
  const server = await endServer(home);
  const gone = server === undefined ? [] : [`The server (pid ${server.pid}) is gone.`];
  const host = await caller.running();
  if (!host) {
    const lines = [...gone, `No keeper is running for ${home}.`];
    return { result: { stopped: false, home, ...(server && { server: server.pid }) }, lines };
  }
  const { live } = await host.health(caller.sees, {});
  const { pid } = host.keeper;
  await host.stop();
  const ended =
    live === 0 ? 'no process was running' : `${plural(live, 'process', 'processes')} ended`;
  return {
    result: { stopped: true, home, pid, ended: live, ...(server && { server: server.pid }) },
    lines: [...gone, `The keeper (pid ${pid}) is gone; ${ended}.`],
  };
}
