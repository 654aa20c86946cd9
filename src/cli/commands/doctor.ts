// `holdfast doctor`

import { existsSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Caller } from '../caller.ts';
import type { Command } from '../arguments/command.ts';
import { olderBuild } from '../local/keeper-age.ts';
import { localServer } from '../local/server.ts';
import { alignedRows } from '../output/table.ts';
import { formatBytes } from '../arguments/units.ts';

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
  summary: 'Check what Holdfast needs on this machine, and report problems.',
  options: {},
  notes: ['Exit code 1: a check failed.'],
  read({ words, caller }) {
    words.expect();
    return async () => {
      const checks = [
        node(),
        await systemCalls(),
        await home(caller),
        room(caller),
        await keeper(caller),
        await server(caller),
        await fonts(),
      ];
      const rows = checks.map(({ name, ok, message }) => [ok ? 'ok' : 'WRONG', name, message]);
      const exitCode = checks.every(({ ok }) => ok) ? 0 : 1;
      return { result: { checks }, lines: alignedRows(rows, Infinity), exitCode };
    };
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
  const { loadPosix, posixProblem } = await import('../../system/posix.ts');
  const ok = loadPosix() !== undefined;
  return {
    name: 'system calls',
    ok,
    message: ok ? 'can be made' : (posixProblem() ?? 'cannot be made'),
  };
}

async function home({ home: folder }: Caller): Promise<Check> {
  const { openHome } = await import('../../keeper/home.ts');
  const { whyNotWritable } = await import('../../system/private-folder.ts');
  const there = existsSync(folder);
  try {
    if (there) openHome(folder);
  } catch (error) {
    return failed('home', error);
  }
  const problem = whyNotWritable(folder);
  if (problem !== undefined)
    return {
      name: 'home',
      ok: false,
      message: `${folder}: ${problem}; name another with HOLDFAST_HOME`,
    };
  const message = there ? `${folder}, private` : `${folder} will be created when needed`;
  return { name: 'home', ok: true, message };
}

function failed(name: string, error: unknown): Check {
  return { name, ok: false, message: error instanceof Error ? error.message : String(error) };
}

function room({ home: folder }: Caller): Check {
  let there = folder;
  while (!existsSync(there)) there = dirname(there);
  const { bavail, bsize } = statfsSync(there);
  const free = bavail * bsize;
  return { name: 'disk', ok: free > LITTLE_ROOM_BYTES, message: `${formatBytes(free)} free` };
}

async function keeper(caller: Caller): Promise<Check> {
  try {
    const host = await caller.running();
    if (!host) return { name: 'keeper', ok: true, message: 'not running; starts when needed' };
    const { version, pid, degraded, uptimeMs } = await host.health(caller.sees, {});
    const stored = degraded === 0 ? '' : `; the output of ${degraded} processes cannot be stored`;
    const older = olderBuild(uptimeMs);
    const build = older === undefined ? '' : `; ${older}`;
    return {
      name: 'keeper',
      ok: degraded === 0,
      message: `${version}, pid ${pid}${stored}${build}`,
    };
  } catch (error) {
    return failed('keeper', error);
  }
}

async function server(caller: Caller): Promise<Check> {
  try {
    const running = await localServer(caller.home);
    const message = running ? `${running.url}, pid ${running.pid}` : 'not running';
    return { name: 'server', ok: true, message };
  } catch (error) {
    return failed('server', error);
  }
}

/** Nothing is wrong where scripts are missing: only pictures show them as boxes. */
async function fonts(): Promise<Check> {
  const { MachineFonts, scriptsWithoutFont } =
    await import('../../screen/picture/machine-fonts.ts');
  const missing = scriptsWithoutFont(new MachineFonts()).join(', ');
  const remedy = 'install a font that has them, on Debian: apt-get install fonts-noto-cjk';
  return {
    name: 'fonts',
    ok: true,
    message:
      missing === ''
        ? 'pictures show Chinese, Japanese and Korean'
        : `pictures show empty boxes for ${missing}; ${remedy}`,
  };
}
