// `holdfast help`

import { HoldfastError } from '../../protocol/errors.ts';
import { commonOptions, helpOf, type Answer, type Command } from '../command.ts';
import { commands } from '../commands.ts';
import { label } from '../terminal-text.ts';

export const command: Command = {
  name: 'help',
  usage: '[COMMAND]',
  summary: 'List the commands, or explain one.',
  options: {},
  async run({ words }) {
    const [name] = words.exactly(0, 1);
    return name === undefined ? helpOfAll() : helpOfOne(name);
  },
};

async function helpOfOne(name: string): Promise<Answer> {
  const load = commands.get(name);
  if (!load)
    throw new HoldfastError('invalid_input', `There is no command "${label(name)}".`, {
      usage: 'holdfast help',
    });
  const { command: found } = await load();
  const { usage, summary, options } = found;
  return {
    result: { name, usage, summary, options: { ...options, ...commonOptions } },
    lines: helpOf(found),
  };
}

async function helpOfAll(): Promise<Answer> {
  const loaded = await Promise.all(Array.from(commands.values(), (load) => load()));
  const all = loaded.map((module) => module.command);
  const width = Math.max(...all.map(({ name }) => name.length));
  const lines = [
    'holdfast COMMAND [options]',
    '',
    '  Starts processes and keeps them: every byte they print, and the truth about how they ended.',
    '',
    ...all.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
    '',
    '  ID is an id, the beginning of one, or a name. Every command takes --json, --home DIR and --owner NAME.',
    '  "holdfast help COMMAND" explains one.',
  ];
  return {
    result: { commands: all.map(({ name, usage, summary }) => ({ name, usage, summary })) },
    lines,
  };
}
