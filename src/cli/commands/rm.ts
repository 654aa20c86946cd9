// `holdfast rm`

import type { Command } from '../command.ts';
import { forEach } from '../for-each.ts';

export const command: Command = {
  name: 'rm',
  usage: 'ID... [--force]',
  summary: 'Forget processes that have ended, and all they printed.',
  options: {
    force: { type: 'boolean', short: 'f', about: 'end it first if it is alive' },
  },
  async run({ words, caller }) {
    const ids = words.exactly(1, Infinity);
    const force = words.flag('force');
    return forEach(ids, async (text) => {
      const { id, owner } = await caller.find(text);
      const host = await caller.host();
      await host.remove(owner, { id, force });
      return { result: { id }, line: `${id}  removed` };
    });
  },
};
