// `holdfast doctor`

import { existsSync } from 'node:fs';
import type { Caller } from '../caller.ts';
import type { Command } from '../arguments/command.ts';
import {
  findDiskSpace,
  findNode,
  findSystemCalls,
  performChecks,
  type Check,
  type CheckResult,
} from '../local/checks.ts';
import { olderBuild } from '../local/keeper-age.ts';
import { localServer } from '../local/server.ts';
import { alignedRows } from '../output/table.ts';
import { summaries } from '../summaries.ts';

const checks: readonly Check[] = [
  { name: 'node', find: findNode },
  { name: 'system calls', find: findSystemCalls },
  { name: 'home', find: findHome },
  { name: 'settings', find: findSettings },
  { name: 'disk', find: findDiskSpace },
  { name: 'keeper', find: findKeeper },
  { name: 'server', find: findServer },
  { name: 'limits', find: findLimits },
  { name: 'fonts', find: findFonts },
];

export const command: Command = {
  name: 'doctor',
  usage: '',
  summary: summaries.doctor,
  examples: ['holdfast doctor'],
  options: {},
  notes: ['Exit code 1: a check failed.'],
  read({ words, caller }) {
    words.expect();
    return async () => {
      const found = (await checkMachine(caller)).map(({ name, status, message }) => ({
        name,
        ok: status === 'pass',
        message,
      }));
      const rows = found.map(({ name, ok, message }) => [ok ? 'ok' : 'WRONG', name, message]);
      const exitCode = found.every(({ ok }) => ok) ? 0 : 1;
      return { result: { checks: found }, lines: alignedRows(rows, Infinity), exitCode };
    };
  },
};

export function checkMachine(caller: Caller): Promise<CheckResult[]> {
  return performChecks(checks, caller);
}

async function findHome({ home }: Caller): Promise<string> {
  const { openHome } = await import('../../keeper/home.ts');
  const { whyNotWritable } = await import('../../system/private-folder.ts');
  const exists = existsSync(home);
  if (exists) openHome(home);
  const problem = whyNotWritable(home);
  if (problem !== undefined)
    throw new Error(`${home}: ${problem}; name another with HOLDFAST_HOME`);
  return exists ? `${home}, private` : `${home} will be created when needed`;
}

async function findSettings(caller: Caller): Promise<string> {
  const { configPath } = await import('../settings/config-file.ts');
  await caller.settings();
  const file = configPath(caller.home);
  return `${existsSync(file) ? file : `no ${file}`}; "holdfast config" shows all of them`;
}

async function findKeeper(caller: Caller): Promise<string> {
  const host = await caller.running();
  if (!host) return 'not running; starts when needed';
  const { version, pid, degraded, uptimeMs } = await host.health(caller.sees, {});
  const older = olderBuild(uptimeMs);
  const found = `${version}, pid ${pid}`;
  if (degraded > 0)
    throw new Error(`${found}; the output of ${degraded} processes cannot be stored`);
  return older === undefined ? found : `${found}; ${older}`;
}

/** A machine that can enforce little is no failure: starts that need more are refused. */
async function findLimits(caller: Caller): Promise<string> {
  const host = await caller.running();
  if (!host) return 'the keeper says what it can enforce; it is not running';
  const means = Object.entries(await host.enforcement(caller.sees, {}));
  const held = means
    .filter(([, { by }]) => by !== 'no')
    .map(([name, { by }]) => `${name} by ${by}`);
  const reasons = new Map<string, string[]>();
  for (const [name, { by, why = '' }] of means)
    if (by === 'no' || by === 'watch') reasons.set(why, [...(reasons.get(why) ?? []), name]);
  const lacks = Array.from(reasons, ([why, names]) => `; ${names.join(', ')}: ${why}`);
  return `${held.join(', ')}${lacks.join('')}`;
}

async function findServer({ home }: Caller): Promise<string> {
  const server = await localServer(home);
  return server ? `${server.url}, pid ${server.pid}` : 'not running';
}

/** A script without a font is no failure: pictures show it as boxes. */
async function findFonts(): Promise<string> {
  const { MachineFonts, scriptsWithoutFont } =
    await import('../../screen/picture/machine-fonts.ts');
  const missing = scriptsWithoutFont(new MachineFonts()).join(', ');
  if (missing === '') return 'pictures show Chinese, Japanese and Korean';
  const remedy = 'install a font that has them, on Debian: apt-get install fonts-noto-cjk';
  return `pictures show empty boxes for ${missing}; ${remedy}`;
}
