// `holdfast rm`

import type { Command } from '../arguments/command.ts';
import { forEachNamed } from '../for-each.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'rm',
  usage: 'ID... [--force]',
  summary: summaries.rm,
  examples: ['holdfast rm tests', 'holdfast rm --force web'],
  takes: 'processes',
  options: {
    force: { type: 'boolean', short: 'f', about: 'stop it first if it is running' },
  },
  read({ words, caller }) {
    const ids = words.expect('ID...');
    const force = words.flag('force');
    return () =>
      forEachNamed(ids, async (text) => {
        const { id, owner } = await caller.find(text);
        const host = await caller.host();
        await host.remove(owner, { id, force });
        return { result: { id }, line: `${id}  removed` };
      });
  },
};
