// `holdfast shutdown`

import type { Command } from '../command.ts';
import { plural } from '../units.ts';

export const command: Command = {
  name: 'shutdown',
  usage: '',
  summary: 'End every process and the keeper. Output and outcomes stay readable.',
  options: {},
  async run({ words, caller }) {
    words.exactly(0, 0);
    const { home } = caller;
    const host = await caller.running();
    if (!host) {
      return { result: { stopped: false, home }, lines: [`No keeper is running for ${home}.`] };
    }
    const { live } = await host.health(caller.sees, {});
    const { pid } = host.keeper;
    await host.stop();
    const ended =
      live === 0 ? 'no process was running' : `${plural(live, 'process', 'processes')} ended`;
    return {
      result: { stopped: true, home, pid, ended: live },
      lines: [`The keeper (pid ${pid}) is gone; ${ended}.`],
    };
  },
};
