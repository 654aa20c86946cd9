#!/usr/bin/env node
// agent-tty's command line, for scripts that were written for it: the `tty` commands, with its variable for the home.

import { ttyMain } from './tty/main.ts';

const { AGENT_TTY_HOME: home, ...env } = process.env;
process.exitCode = await ttyMain(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  home: home ?? env['HOLDFAST_HOME'],
  program: 'agent-tty',
  stdout: process.stdout,
  stderr: process.stderr,
});
