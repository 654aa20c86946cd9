// `holdfast attach`

import { HoldfastError } from '../../protocol/errors.ts';
import type { Command } from '../arguments/command.ts';
import { attachTo } from '../attachment.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'attach',
  usage: 'ID [--read-only | --share | --steal] [--detach-key ^]]',
  summary: summaries.attach,
  examples: ['holdfast attach shell', 'holdfast attach shell --read-only'],
  takes: 'processes',
  options: {
    'read-only': { type: 'boolean', short: 'r', about: 'only watch: type and resize nothing' },
    'detach-key': { type: 'string', value: '^]', about: 'key that detaches (default Ctrl-])' },
    share: { type: 'boolean', about: 'let others type too' },
    steal: { type: 'boolean', about: 'take the keyboard from the person who is attached' },
  },
  notes: [
    'While you are attached nobody else can type, unless you use --share. The program keeps running when you detach.',
  ],
  read({ words, caller }) {
    const [id = ''] = words.expect('ID');
    const { stdin, stdout } = process;
    const key = keyOf(words.text('detach-key') ?? '^]');
    if (key === undefined) throw words.wrong('--detach-key is "^" and a letter or one of @[\\]^_');
    if (['read-only', 'share', 'steal'].filter((flag) => words.flag(flag)).length > 1)
      throw words.wrong('--read-only, --share and --steal are mutually exclusive');
    const options = {
      key,
      readOnly: words.flag('read-only'),
      share: words.flag('share'),
      steal: words.flag('steal'),
    };
    if (!stdin.isTTY || !stdout.isTTY) throw words.wrong('stdin and stdout must be a terminal');
    return async () => {
      const target = await caller.find(id);
      if (target.streams !== 'pty')
        throw new HoldfastError(
          'not_a_terminal',
          `Process ${target.id} is not a terminal: it was started with pipes.`,
        );
      const how = await attachTo(caller, target, options);
      return { result: { id: target.id, ...how }, lines: [how.words] };
    };
  },
};

function keyOf(text: string): number | undefined {
  const [, letter] = /^\^([@-_a-z])$/.exec(text) ?? [];
  return letter === undefined ? undefined : letter.toUpperCase().charCodeAt(0) & 0x1f;
}
