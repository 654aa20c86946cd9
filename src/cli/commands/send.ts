// `holdfast send`

import type { Command } from '../command.ts';

export const command: Command = {
  name: 'send',
  usage: 'ID [TEXT | -] [--eof] [-n]',
  summary: 'Write to the stdin of a process.',
  options: {
    eof: { type: 'boolean', about: 'end its input afterwards' },
    'no-newline': { type: 'boolean', short: 'n', about: 'TEXT as it is, without a line end' },
  },
  notes: [
    'TEXT is followed by a line end. "-" sends the stdin of this command, byte for byte.',
    'The process must have been started with "run --stdin" or "run --pty".',
  ],
  async run({ words, caller }) {
    const [id = '', text] = words.exactly(1, 2);
    const eof = words.flag('eof');
    if (text === undefined && !eof)
      throw words.wrong('there is nothing to send: give TEXT, "-" or --eof');
    const { owner, id: target } = await caller.find(id);
    const host = await caller.host();
    let bytes = 0;
    const send = async (data: Buffer<ArrayBuffer>): Promise<void> => {
      bytes += (await host.write(owner, { id: target, data })).bytes;
    };
    if (text === '-')
      for await (const chunk of process.stdin) await send(chunk as Buffer<ArrayBuffer>);
    else if (text !== undefined)
      await send(Buffer.from(words.flag('no-newline') ? text : `${text}\n`));
    if (eof) await host.write(owner, { id: target, eof: true });
    return { result: { id: target, bytes, eof } };
  },
};
