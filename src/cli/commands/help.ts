// `holdfast help`

import { commonOptions, helpOf, type Answer, type Command } from '../arguments/command.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'help',
  usage: '[COMMAND]',
  summary: summaries.help,
  options: {},
  read({ words, out }) {
    const [name] = words.expect('[COMMAND]');
    if (name !== undefined) return () => helpOfOne(name);
    return async () => (out.json ? { result: { commands: await allCommands() } } : helpOfAll());
  },
};

async function helpOfOne(name: string): Promise<Answer> {
  const { findCommand } = await import('../commands.ts');
  const found = await findCommand(name);
  const { usage, summary, options } = found;
  return {
    result: { name, usage, summary, options: { ...options, ...commonOptions } },
    lines: helpOf(found),
  };
}

/** For people: no command is loaded for this. */
function helpOfAll(): Answer {
  const rows = Object.entries(summaries);
  const width = Math.max(...rows.map(([name]) => name.length));
  const lines = [
    'holdfast COMMAND [options]',
    '',
    '  Runs commands and terminals, and keeps all their output and exit codes.',
    '',
    ...rows.map(([name, summary]) => `  ${name.padEnd(width)}  ${summary}`),
    '',
    '  ID is an id, a prefix of one, or a name. Every command takes --json, --home DIR and --owner NAME.',
    '  "holdfast help COMMAND" explains one.',
  ];
  return { result: undefined, lines };
}

/** For programs: how each is used stands in its own file. */
async function allCommands(): Promise<Pick<Command, 'name' | 'usage' | 'summary'>[]> {
  const { commands } = await import('../commands.ts');
  const loaded = await Promise.all(Array.from(commands.values(), (load) => load()));
  return loaded.map(({ command: { name, usage, summary } }) => ({ name, usage, summary }));
}
