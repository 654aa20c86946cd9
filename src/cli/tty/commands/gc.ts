// `tty gc`: forgets terminals that have ended, in this home; with --all-homes also where a keeper runs elsewhere.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { rm } from 'node:fs/promises';
import type { ProcessInfo } from '../../../protocol/process.ts';
import { orphanedFolders, terminalFolder } from '../../../journal/terminal-folder.ts';
import { Caller } from '../../caller.ts';
import type { TtyAnswer, TtyCall, TtyCommand } from '../command.ts';
import { TtyError } from '../envelope.ts';
import { HomeRegistry } from '../home-registry.ts';
import { terminalsOf } from '../sessions.ts';

interface Filter {
  readonly dryRun: boolean;
  readonly staleOnly: boolean;
  readonly olderMs: number;
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
  summary: 'Forget terminals that have ended.',
  flags: {
    'dry-run': { type: 'boolean', about: 'only say what would be removed' },
    'stale-only': { type: 'boolean', about: 'only those that were lost' },
    'all-homes': {
      type: 'boolean',
      about: 'in every known home as well whose keeper runs; no other is woken',
    },
    'older-than': { type: 'string', about: 'only those that ended so long ago: 30m, 12h, 7d' },
  },
  async run(call): Promise<TtyAnswer> {
    call.exactly(0);
    const filter = {
      dryRun: call.flag('dry-run'),
      staleOnly: call.flag('stale-only'),
      olderMs: ageMs(call.text('older-than')),
    };
    const homes = call.flag('all-homes')
      ? await sweepAll(call, filter)
      : [await sweep(call.caller, filter)];
    const removed = homes.flatMap(({ removedSessions }) => removedSessions);
    const result = {
      dryRun: filter.dryRun,
      homes,
      removedSessionCount: removed.length,
      totalBytesFreed: homes.reduce((sum, each) => sum + each.totalBytesFreed, 0),
      deregisteredHomes: homes.filter((each) => each.deregistered).map(({ home }) => home),
    };
    return { result, lines: removed };
  },
};

/** The user's own home and all that are registered; those with nothing left in them are taken off the list. */
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

/** A keeper that sleeps elsewhere is left asleep: what it keeps is its own user's to collect. */
async function sweepKnown(
  caller: Caller,
  isOwn: boolean,
  filter: Filter,
  registry: HomeRegistry,
): Promise<Swept> {
  const { home } = caller;
  const isUsed = existsSync(join(home, 'journals'));
  const sleeps = !isOwn && isUsed && (await caller.running().catch(() => undefined)) === undefined;
  const found: Swept = sleeps
    ? {
        home,
        existed: true,
        removedSessions: [],
        skippedSessions: [],
        totalBytesFreed: 0,
        deregistered: false,
      }
    : await sweep(caller, filter);
  const isEmpty = !sleeps && (!found.existed || found.skippedSessions.length === 0);
  const known = registry.all().some(({ path }) => path === home);
  return { ...found, deregistered: !filter.dryRun && isEmpty && known && registry.forget(home) };
}

async function sweep(caller: Caller, filter: Filter): Promise<Swept> {
  const removedSessions: string[] = [];
  const skippedSessions: { sessionId: string; reason: string }[] = [];
  let totalBytesFreed = 0;
  const existed = existsSync(caller.home);
  for (const process of existed ? await terminalsOf(caller) : []) {
    const reason = whyKept(process, filter);
    const problem = reason ?? (filter.dryRun ? undefined : await forget(caller, process));
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

/** What cannot be removed is told, and does not keep the others. */
async function forget(caller: Caller, process: ProcessInfo): Promise<string | undefined> {
  try {
    // What hangs on it goes first: a session that is still there can be collected again.
    await rm(terminalFolder(caller.home, process), { recursive: true, force: true });
    await (await caller.host()).remove(process.owner, { id: process.id });
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function whyKept(process: ProcessInfo, { olderMs, staleOnly }: Filter): string | undefined {
  const ended = process.state === 'closed' || process.state === 'lost';
  if (!ended || !process.settled) return 'active';
  if (staleOnly && process.state !== 'lost') return 'not-stale';
  if (Date.now() - (process.closedAtMs ?? 0) < olderMs) return 'too-recent';
  return undefined;
}

function ageMs(text: string | undefined): number {
  if (text === undefined) return 0;
  const [, amount = '', unit = ''] = /^(\d{1,9})([mhd])$/.exec(text) ?? [];
  if (amount === '')
    throw new TtyError(
      'INVALID_DURATION',
      `--older-than "${text.slice(0, 40)}" is not like 30m, 12h or 7d.`,
    );
  return Number(amount) * { m: 60_000, h: 3_600_000, d: 86_400_000 }[unit as 'm' | 'h' | 'd'];
}
