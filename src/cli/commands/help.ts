// `holdfast help`

import {
  commonOptions,
  helpOf,
  type Answer,
  type Command,
  type CommandHead,
} from '../arguments/command.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'help',
  usage: '[COMMAND]',
  summary: summaries.help,
  examples: ['holdfast help', 'holdfast help run'],
  options: {},
  read({ words, out }) {
    const [name] = words.expect('[COMMAND]');
    if (name !== undefined) return () => helpOfOne(name);
    return async () =>
      out.json
        ? { result: { commands: await allCommands(), options: commonOptions } }
        : helpOfAll();
  },
};

async function helpOfOne(name: string): Promise<Answer> {
  const { findCommand } = await import('../commands.ts');
  const found = await findCommand(name);
  return {
    result: { ...describe(found), options: { ...found.options, ...commonOptions } },
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

/** For programs, and for the documentation: how each is used stands in its own file. */
async function allCommands(): Promise<object[]> {
  const { commands } = await import('../commands.ts');
  const { ttyCommands } = await import('../tty/main.ts');
  const loaded = await Promise.all(Array.from(commands.values(), (load) => load()));
  const own = loaded.flatMap(({ command: each }) => (each.name === 'tty' ? [] : [each]));
  const terminal = (await ttyCommands()).map((each) => ({ ...each, name: `tty ${each.name}` }));
  return [...own, ...terminal].map(describe);
}

function describe({ name, usage, summary, notes = [], examples, options }: CommandHead): object {
  return { name, usage, summary, notes, examples, options };
}
