// `tty gc`: deletes terminals that have ended, in this home; with --all-homes also in others whose keeper runs.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { rm } from 'node:fs/promises';
import type { ProcessInfo } from '../../../protocol/process.ts';
import { orphanedFolders, removeTerminalFolder } from '../../../journal/terminal-folder.ts';
import { parseDuration } from '../../arguments/units.ts';
import { Caller } from '../../caller.ts';
import { Output } from '../../output/output.ts';
import { Progress } from '../../output/progress.ts';
import { removeExited, whyKept, type ExitedFilter } from '../../local/exited.ts';
import type { TtyAnswer, TtyCall, TtyCommand } from '../command.ts';
import { TtyError } from '../envelope.ts';
import { HomeRegistry } from '../home-registry.ts';
import { terminalsOf } from '../sessions.ts';

interface Filter extends ExitedFilter {
  readonly dryRun: boolean;
  readonly progress: Progress;
}

interface Swept {
  readonly home: string;
  readonly existed: boolean;
  readonly removedSessions: string[];
  readonly skippedSessions: { sessionId: string; reason: string }[];
  readonly totalBytesFreed: number;
  readonly deregistered: boolean;
}

export const gc: TtyCommand = {
  name: 'gc',
  usage: '[--dry-run] [--older-than 7d] [--all-homes]',
  summary: 'Delete terminals that have ended.',
  examples: ['holdfast tty gc'],
  options: {
    'dry-run': { type: 'boolean', about: 'only say what would be removed' },
    'stale-only': { type: 'boolean', about: 'only those that were lost' },
    'all-homes': {
      type: 'boolean',
      about: 'in every known home whose keeper runs, too; no keeper is started',
    },
    'older-than': {
      type: 'string',
      value: '7d',
      about: 'only those that ended this long ago: 30m, 12h, 7d',
    },
  },
  async run(call): Promise<TtyAnswer> {
    call.expect();
    const asked = {
      dryRun: call.flag('dry-run'),
      lostOnly: call.flag('stale-only'),
      olderMs: ageMs(call.text('older-than')),
    };
    const { stdout, stderr, env } = call.options;
    const colour = !env['NO_COLOR'] && env['TERM'] !== 'dumb';
    const out = new Output({ stdout, stderr, json: call.flag('json'), raw: false, colour });
    const filter = {
      ...asked,
      progress: new Progress(out, (done, all) => `${done} of ${all} seen`),
    };
    const homes = call.flag('all-homes')
      ? await sweepAll(call, filter)
      : [await sweep(call.caller, filter)];
    out.endLive();
    const removed = homes.flatMap(({ removedSessions }) => removedSessions);
    const result = {
      dryRun: filter.dryRun,
      homes,
      removedSessionCount: removed.length,
      totalBytesFreed: homes.reduce((total, each) => total + each.totalBytesFreed, 0),
      deregisteredHomes: homes.filter((each) => each.deregistered).map(({ home }) => home),
    };
    return { result, lines: removed, ...(removed.length === 0 && { note: 'nothing to remove.' }) };
  },
};

/** This home and all registered ones. A home with nothing left in it is taken off the list. */
async function sweepAll(call: TtyCall, filter: Filter): Promise<Swept[]> {
  const { env, cwd, home: own } = call.caller;
  const registry = new HomeRegistry(env);
  const known = registry.all().map(({ path }) => path);
  const swept: Swept[] = [];
  for (const home of new Set([own, ...known])) {
    const caller = home === own ? call.caller : new Caller({ env, cwd, home, owner: undefined });
    try {
      swept.push(await sweepKnown(caller, home === own, filter, registry));
    } finally {
      if (caller !== call.caller) await caller.close();
    }
  }
  return swept;
}

/** No keeper is started in another home: what is stored there is collected when that home is used. */
async function sweepKnown(
  caller: Caller,
  isOwn: boolean,
  filter: Filter,
  registry: HomeRegistry,
): Promise<Swept> {
  const { home } = caller;
  const isUsed = existsSync(join(home, 'journals'));
  const isIdle = !isOwn && isUsed && (await caller.running().catch(() => undefined)) === undefined;
  const found: Swept = isIdle
    ? {
        home,
        existed: true,
        removedSessions: [],
        skippedSessions: [],
        totalBytesFreed: 0,
        deregistered: false,
      }
    : await sweep(caller, filter);
  const isEmpty = !isIdle && (!found.existed || found.skippedSessions.length === 0);
  const known = registry.all().some(({ path }) => path === home);
  return { ...found, deregistered: !filter.dryRun && isEmpty && known && registry.forget(home) };
}

async function sweep(caller: Caller, filter: Filter): Promise<Swept> {
  const removedSessions: string[] = [];
  const skippedSessions: { sessionId: string; reason: string }[] = [];
  let totalBytesFreed = 0;
  const existed = existsSync(caller.home);
  const terminals = existed ? await terminalsOf(caller) : [];
  for (const [index, process] of terminals.entries()) {
    filter.progress.at(index, terminals.length);
    const reason = whyKept(process, filter);
    const problem = reason ?? (filter.dryRun ? undefined : await remove(caller, process));
    if (problem !== undefined) {
      skippedSessions.push({ sessionId: process.id, reason: problem });
      continue;
    }
    removedSessions.push(process.id);
    totalBytesFreed += process.bytes.retained;
  }
  if (existed && !filter.dryRun)
    for (const folder of orphanedFolders(caller.home, await terminalsOf(caller)))
      await rm(folder, { recursive: true, force: true });
  const { home } = caller;
  return { home, existed, removedSessions, skippedSessions, totalBytesFreed, deregistered: false };
}

/** Why it could not be deleted. */
async function remove(caller: Caller, process: ProcessInfo): Promise<string | undefined> {
  try {
    // The folder goes first: if it cannot be removed, the session stays and can be collected again.
    await removeTerminalFolder(caller.home, process);
    await removeExited(await caller.host(), process);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Minutes, hours or days: a number without a unit could mean anything. */
function ageMs(text: string | undefined): number {
  if (text === undefined) return 0;
  const ms = /^\d{1,9}[mhd]$/.test(text) ? parseDuration(text) : undefined;
  if (ms !== undefined) return ms;
  throw new TtyError(
    'INVALID_DURATION',
    `--older-than "${text.slice(0, 40)}" is not like 30m, 12h or 7d.`,
  );
}
