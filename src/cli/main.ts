#!/usr/bin/env node
// The `holdfast` command.

import type { Output } from './output/output.ts';
import { runProgram } from './program.ts';

/** 128 + SIGPIPE: what a program that nobody listens to ends with. */
const BROKEN_PIPE_EXIT = 141;

const { stdout, stderr, env } = process;
process.exitCode = await runProgram(process.argv.slice(2), {
  env,
  cwd: process.cwd(),
  stdout,
  stderr,
  begun: leaveWhenNobodyReads,
});

function leaveWhenNobodyReads(out: Output): void {
  const leave = async (pipeClosed: boolean): Promise<void> => {
    try {
      await out.leave(pipeClosed);
    } finally {
      // What cannot be told to anybody is not told.
      process.exit(BROKEN_PIPE_EXIT);
    }
  };
  for (const stream of [stdout, stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (out.unread) return;
      // EIO: the terminal has been closed.
      if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error;
      void leave(error.code === 'EPIPE');
    });
}
