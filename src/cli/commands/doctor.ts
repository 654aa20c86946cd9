// `holdfast doctor`

import { existsSync, statfsSync } from 'node:fs';
import type { Caller } from '../caller.ts';
import type { Command } from '../command.ts';
import { alignedRows } from '../table.ts';
import { formatBytes } from '../units.ts';

interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly message: string;
}

/** Below this a few busy processes fill the disk. */
const LITTLE_ROOM_BYTES = 256 * 1024 * 1024;

export const command: Command = {
  name: 'doctor',
  usage: '',
  summary: 'Check what Holdfast needs on this machine, and say what is wrong.',
  options: {},
  notes: ['Exits with 1 when a check fails.'],
  async run({ words, caller }) {
    words.exactly(0, 0);
    const checks = [
      node(),
      await systemCalls(),
      await home(caller),
      room(caller),
      await keeper(caller),
      await server(caller),
    ];
    const rows = checks.map(({ name, ok, message }) => [ok ? 'ok' : 'WRONG', name, message]);
    const exitCode = checks.every(({ ok }) => ok) ? 0 : 1;
    return { result: { checks }, lines: alignedRows(rows, Infinity), exitCode };
  },
};

function node(): Check {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const ok = major > 20 || (major === 20 && minor >= 19);
  return {
    name: 'node',
    ok,
    message: ok ? process.versions.node : `${process.versions.node}; 20.19 or newer is needed`,
  };
}

async function systemCalls(): Promise<Check> {
  const { loadPosix, posixProblem } = await import('../../host/posix.ts');
  const ok = loadPosix() !== undefined;
  return {
    name: 'system calls',
    ok,
    message: ok ? 'can be made' : (posixProblem() ?? 'cannot be made'),
  };
}

async function home(caller: Caller): Promise<Check> {
  const { openHome } = await import('../../keeper/home.ts');
  if (!existsSync(caller.home))
    return { name: 'home', ok: true, message: `${caller.home} will be made when it is needed` };
  try {
    return { name: 'home', ok: true, message: `${openHome(caller.home).folder}, private` };
  } catch (error) {
    return {
      name: 'home',
      ok: false,
      message: error instanceof Error ? error.message : String(error),
    };
  }
}

function room(caller: Caller): Check {
  const { bavail, bsize } = statfsSync(existsSync(caller.home) ? caller.home : '/');
  const free = bavail * bsize;
  return { name: 'disk', ok: free > LITTLE_ROOM_BYTES, message: `${formatBytes(free)} free` };
}

async function keeper(caller: Caller): Promise<Check> {
  try {
    const host = await caller.running();
    if (!host)
      return { name: 'keeper', ok: true, message: 'not running; started when it is needed' };
    const { version, pid, degraded } = await host.health(caller.sees, {});
    const stored = degraded === 0 ? '' : `; the output of ${degraded} processes cannot be stored`;
    return { name: 'keeper', ok: degraded === 0, message: `${version}, pid ${pid}${stored}` };
  } catch (error) {
    return {
      name: 'keeper',
      ok: false,
      message: error instanceof Error ? error.message : String(error),
    };
  }
}

async function server(caller: Caller): Promise<Check> {
  if (!existsSync(caller.home)) return { name: 'server', ok: true, message: 'not running' };
  const { runningServer } = await import('../../server/server-lock.ts');
  const running = runningServer(caller.home);
  return {
    name: 'server',
    ok: true,
    message: running ? `${running.url}, pid ${running.pid}` : 'not running',
  };
}
