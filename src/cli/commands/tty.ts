// `holdfast tty`: only its place in the help. Its commands have flags and envelopes of their own: see cli/tty.

import type { Command } from '../arguments/command.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'tty',
  usage:
    'create|list|inspect|run|type|paste|send-keys|batch|mark|resize|signal|wait|snapshot|destroy|gc ...',
  summary: summaries.tty,
  examples: [
    'holdfast tty create --name shell -- bash',
    "holdfast tty run shell 'git status'",
    'holdfast tty help',
  ],
  options: {},
  notes: ['"holdfast tty help" lists the commands, "holdfast tty COMMAND --help" their flags.'],
  read({ words }) {
    throw words.wrong('missing command: "holdfast tty help" lists them');
  },
};
