// The server as a program of its own that watches itself (test/programs/watched-server.mjs).

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { onCleanup, program, temporaryFolder } from './hosts.ts';

export interface Ready {
  readonly home: string;
  readonly keeperPid: number;
  readonly url: string;
  readonly token: string;
  readonly routes: readonly string[];
}

interface Seen {
  readonly uncaught: readonly string[];
  readonly unhandled: readonly string[];
  readonly reports: readonly string[];
  readonly longestBusyMs: number;
  readonly longestDelayMs: number;
  readonly rssBytes: number;
}

/** The server as a program, and how to ask what it has seen. */
export async function watchedServer(): Promise<Ready & { seen: () => Promise<Seen> }> {
  const home = temporaryFolder();
  const child = spawn(process.execPath, [program('watched-server.mjs'), home], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  onCleanup(async () => {
    child.stdin.end();
    await ended;
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async <T>(): Promise<T> => {
    const { value, done } = await lines.next();
    if (done === true) throw new Error(`the server ended: ${child.exitCode}`);
    return JSON.parse(value) as T;
  };
  const ready = { ...(await next<Omit<Ready, 'home'>>()), home };
  const seen = async (): Promise<Seen> => {
    child.stdin.write('\n');
    return next<Seen>();
  };
  return { ...ready, seen };
}
