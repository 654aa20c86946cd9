#!/usr/bin/env node
// agent-tty's command line, for scripts that were written for it: the `tty` commands, with its variable for the home.

import { currentDirectory, exitIfUnwritable, exitWith } from './surroundings.ts';
import { STORAGE_WRITE_EXIT, storageWriteLine } from './tty/envelope.ts';
import { ttyMain } from './tty/main.ts';

const { stdout, stderr, env } = process;
exitIfUnwritable(
  { stdout, stderr },
  {
    report: (sentence) => stderr.write(storageWriteLine(sentence)),
    failureExit: STORAGE_WRITE_EXIT,
  },
);
const running = ttyMain(process.argv.slice(2), {
  env,
  cwd: currentDirectory(),
  home: env['AGENT_TTY_HOME'] ?? env['HOLDFAST_HOME'],
  program: 'agent-tty',
  stdout,
  stderr,
});
exitWith(running);
