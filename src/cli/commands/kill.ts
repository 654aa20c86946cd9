// `holdfast kill`

import type { Command } from '../command.ts';
import { forEach } from '../for-each.ts';
import { label } from '../terminal-text.ts';
import { plural } from '../units.ts';

export const command: Command = {
  name: 'kill',
  usage: 'ID... [--signal TERM]',
  summary: 'Send a signal to processes and all their descendants.',
  options: {
    signal: {
      type: 'string',
      short: 's',
      value: 'NAME',
      about: 'INT, SIGUSR1, KILL, … (default TERM)',
    },
  },
  notes: [
    'Does not wait for what the signal does, except for KILL. "stop" ends a process and makes sure of it.',
  ],
  async run({ words, caller }) {
    const ids = words.exactly(1, Infinity);
    const signal = words.text('signal') ?? 'TERM';
    return forEach(ids, async (text) => {
      const { id, owner } = await caller.find(text);
      const host = await caller.host();
      const result = await host.signal(owner, { id, signal, by: caller.name });
      const { signalled, survivors } = result;
      const left = survivors.map(({ pid, command: line }) => `; SURVIVED: ${pid} ${label(line)}`);
      const line = `${id}  ${label(signal)} sent to ${plural(signalled.length, 'process', 'processes')}${left.join('')}`;
      return { result: { id, ...result }, line, exitCode: survivors.length > 0 ? 1 : 0 };
    });
  },
};
