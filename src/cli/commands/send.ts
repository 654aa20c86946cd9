// `holdfast send`

import type { Command } from '../arguments/command.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'send',
  usage: 'ID [TEXT | -] [--eof] [-n]',
  summary: summaries.send,
  examples: ["holdfast send repl 'print(6 * 7)'", "printf 'a,b\\n' | holdfast send import --eof"],
  takes: 'processes',
  options: {
    eof: { type: 'boolean', about: 'close stdin afterwards' },
    'no-newline': { type: 'boolean', short: 'n', about: 'do not add a line end to TEXT' },
  },
  notes: [
    'Adds a line end to TEXT. "-" sends the stdin of this command unchanged.',
    'The process must have been started with "run --stdin" or "run --pty".',
  ],
  read({ words, caller }) {
    const [id = '', text] = words.expect('ID', '[TEXT]');
    const eof = words.flag('eof');
    const end = words.flag('no-newline') ? '' : '\n';
    if (text === undefined && !eof) throw words.wrong('nothing to send: give TEXT, "-" or --eof');
    return async () => {
      const { owner, id: target } = await caller.find(id);
      const host = await caller.host();
      let bytes = 0;
      const send = async (data: Buffer<ArrayBuffer>): Promise<void> => {
        bytes += (await host.write(owner, { id: target, data })).bytes;
      };
      if (text === '-')
        for await (const chunk of process.stdin) await send(chunk as Buffer<ArrayBuffer>);
      else if (text !== undefined) await send(Buffer.from(text + end));
      if (eof) await host.write(owner, { id: target, eof: true });
      return { result: { id: target, bytes, eof } };
    };
  },
};
