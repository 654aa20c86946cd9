// What a command is started in: its directory, which may be deleted, and its output, which may become unwritable.

import { existsSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, delimiter, isAbsolute, join } from 'node:path';
import { getSystemErrorMap } from 'node:util';
import { shellWord } from './arguments/words.ts';
import type { OutputStream } from './output/output.ts';

/** As Node ends an ES module whose `await` is never answered. */
const UNANSWERED_EXIT = 13;
/** 128 + SIGPIPE, as a program exits whose reader has gone. */
const BROKEN_PIPE_EXIT = 141;
const DELETED = ' (deleted)';

/** Also when the directory is deleted: a command that needs it then fails with its path. */
export function currentDirectory(): string {
  try {
    return process.cwd();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    const path = readlinkSync('/proc/self/cwd');
    return path.endsWith(DELETED) ? path.slice(0, -DELETED.length) : path;
  }
}

/** Exits with the code that a command answers. One that leaves nothing to wait for and never answers does not look successful. */
export function exitWith(running: Promise<number>): void {
  process.exitCode = UNANSWERED_EXIT;
  void running.then((code) => {
    process.exitCode = code;
  });
}

/** How a person starts this program: by its name when the PATH leads here, else by its file. */
export function selfCommand(env: NodeJS.ProcessEnv): string {
  const file = process.argv[1] ?? '';
  const name = basename(file);
  const found = (env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => isAbsolute(folder))
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
  const isOnPath = found !== undefined && realpathSync(found) === realpathSync(file);
  return isOnPath ? name : `node ${shellWord(file)}`;
}

interface Ending {
  /** Reports to stderr that stdout cannot be written. */
  readonly report: (sentence: string) => unknown;
  /** The exit code after that report. */
  readonly failureExit: number;
  /** What is done before the exit; the reader of a pipe may have gone. */
  readonly leave?: (pipeClosed: boolean) => Promise<void>;
}

/** Exits as soon as stdout or stderr cannot be written: quietly when the reader has gone, else with a sentence. */
export function exitIfUnwritable(
  streams: Readonly<Record<'stdout' | 'stderr', OutputStream>>,
  { report, failureExit, leave }: Ending,
): void {
  let ending = false;
  const end = async (name: 'stdout' | 'stderr', error: NodeJS.ErrnoException): Promise<void> => {
    // EIO: the terminal has been closed.
    const readerGone = error.code === 'EPIPE' || error.code === 'EIO';
    try {
      if (!readerGone && name === 'stdout') {
        const [, reason = error.message] = getSystemErrorMap().get(error.errno ?? 0) ?? [];
        await report(`stdout cannot be written: ${reason}. The output is not complete.`);
      }
      await leave?.(error.code === 'EPIPE');
    } finally {
      process.exit(readerGone ? BROKEN_PIPE_EXIT : failureExit);
    }
  };
  for (const name of ['stdout', 'stderr'] as const)
    streams[name].on('error', (error: NodeJS.ErrnoException) => {
      if (!ending) void end(name, error);
      ending = true;
    });
}
