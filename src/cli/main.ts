#!/usr/bin/env node
// The `holdfast` command.

import { runProgram } from './program.ts';
import { currentDirectory, exitIfUnwritable, exitWith } from './surroundings.ts';

const { stdout, stderr, env } = process;
const running = runProgram(process.argv.slice(2), {
  env,
  cwd: currentDirectory(),
  stdout,
  stderr,
  begun: (out, failureExit) =>
    exitIfUnwritable(
      { stdout, stderr },
      {
        report: (sentence) => out.note(sentence, { style: 'red' }),
        failureExit,
        leave: (pipeClosed) => out.leave(pipeClosed),
      },
    ),
});
exitWith(running);
