// `holdfast tty`: only its place in the help. Its commands have flags and envelopes of their own: see cli/tty.

import type { Command } from '../command.ts';

export const command: Command = {
  name: 'tty',
  usage:
    'create|list|inspect|run|type|paste|send-keys|batch|mark|resize|signal|wait|snapshot|destroy|gc ...',
  summary: 'Drive terminals: run commands in a shell, press keys, look at the screen.',
  options: {},
  notes: ['"holdfast tty help" lists the commands, "holdfast tty COMMAND --help" their flags.'],
  run: async ({ words }) => {
    throw words.wrong('name one of its commands');
  },
};
