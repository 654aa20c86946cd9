// Errors put into the system calls of a running program by strace: only into the threads that it has, never into its
// children, which strace follows only when told to.

import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setImmediate as nextTurn } from 'node:timers/promises';

export interface Injection {
  readonly call: string;
  readonly error: string;
  /** The occurrences that fail, as strace's `when` says it: counted by each thread for itself. */
  readonly when: string;
  /** Only calls about one of these files; by default all. */
  readonly paths?: readonly string[];
}

interface Injected {
  readonly calls: number;
  readonly failed: number;
}

/** Why nothing can be injected here; undefined when it can. */
export function injectionProblem(): string | undefined {
  const target = spawn('sleep', ['600'], { stdio: 'ignore' });
  try {
    const { error, stderr } = spawnSync('strace', ['-p', String(target.pid)], {
      // Attached it waits for ever: that it had to be ended is the good case.
      timeout: 300,
      encoding: 'utf8',
    });
    if (error && 'code' in error && error.code === 'ENOENT') return 'strace is not installed';
    return stderr.includes(' attached') ? undefined : `strace cannot attach: ${stderr.trim()}`;
  } finally {
    target.kill('SIGKILL');
  }
}

interface Faults {
  readonly soFar: () => Injected;
  readonly detach: () => Promise<Injected>;
}

/** Resolves when every thread of `pid` is attached. */
export async function inject(
  pid: number,
  { call, error, when, paths = [] }: Injection,
  notes: string,
): Promise<Faults> {
  const threads = readdirSync(`/proc/${pid}/task`);
  const fault = `inject=${call}:error=${error}:when=${when}`;
  const targets = [
    ...paths.flatMap((path) => ['-P', path]),
    ...threads.flatMap((thread) => ['-p', thread]),
  ];
  const words = ['-o', notes, '-e', `trace=${call}`, '-e', fault, ...targets];
  const strace = spawn('strace', words, { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(strace, 'exit');
  await attached(strace, threads.length);
  const soFar = (): Injected => {
    const text = readFileSync(notes, 'latin1');
    return { calls: count(text, `${call}(`), failed: count(text, '(INJECTED)') };
  };
  const detach = async (): Promise<Injected> => {
    // strace replaces the number of a call that is to fail by an invalid one, and the error when the call returns. A thread that is
    // let go in between gets ENOSYS, for which libuv ends the program. Stopped threads are not in between.
    process.kill(pid, 'SIGSTOP');
    const isStopped = (): boolean => {
      const here = readdirSync(`/proc/${pid}/task`).filter((thread) => threads.includes(thread));
      return count(readFileSync(notes, 'latin1'), '--- stopped by SIGSTOP ---') >= here.length;
    };
    while (!isStopped()) await nextTurn();
    strace.kill('SIGINT');
    await ended;
    process.kill(pid, 'SIGCONT');
    const all = soFar();
    rmSync(notes);
    return all;
  };
  return { soFar, detach };
}

async function attached(strace: ChildProcess, threads: number): Promise<void> {
  if (!strace.stderr) throw new Error('strace has no stderr');
  let heard = 0;
  const said: string[] = [];
  for await (const line of createInterface({ input: strace.stderr })) {
    said.push(line);
    // A thread that ended before it could be attached is told as an error of ptrace.
    if (/ attached$|PTRACE_SEIZE/.test(line)) heard += 1;
    if (heard === threads) return;
  }
  throw new Error(`strace ended: ${said.join('; ')}`);
}

function count(text: string, part: string): number {
  return text.split(part).length - 1;
}
