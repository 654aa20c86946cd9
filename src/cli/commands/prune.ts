// `holdfast prune`

import type { Command } from '../command.ts';
import { plural } from '../units.ts';

export const command: Command = {
  name: 'prune',
  usage: '',
  summary: 'Forget every process that has ended, and all they printed.',
  options: {},
  notes: ['A process with a living descendant stays: by it the descendant can be ended.'],
  async run({ words, caller }) {
    words.exactly(0, 0);
    const host = await caller.running();
    const ended = host
      ? (await host.list(caller.sees, {})).processes.filter(
          ({ state, settled }) => settled && (state === 'closed' || state === 'lost'),
        )
      : [];
    for (const { id, owner } of ended) await host?.remove(owner, { id });
    const removed = ended.map(({ id }) => id);
    return {
      result: { removed },
      lines: [`${plural(removed.length, 'process', 'processes')} forgotten.`],
    };
  },
};
