// `holdfast help`

import { commonOptions, helpOf, type Answer, type Command } from '../arguments/command.ts';
import { commands, findCommand } from '../commands.ts';

export const command: Command = {
  name: 'help',
  usage: '[COMMAND]',
  summary: 'List the commands, or explain one.',
  options: {},
  read({ words }) {
    const [name] = words.expect('[COMMAND]');
    return () => (name === undefined ? helpOfAll() : helpOfOne(name));
  },
};

async function helpOfOne(name: string): Promise<Answer> {
  const found = await findCommand(name);
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
    '  Runs commands and terminals, and keeps all their output and exit codes.',
    '',
    ...all.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
    '',
    '  ID is an id, a prefix of one, or a name. Every command takes --json, --home DIR and --owner NAME.',
    '  "holdfast help COMMAND" explains one.',
  ];
  return {
    result: { commands: all.map(({ name, usage, summary }) => ({ name, usage, summary })) },
    lines,
  };
}
