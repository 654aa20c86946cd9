// Runs rows of the fault matrix against one keeper after another, and tells what was wrong: during the faults, and
// with the keeper once they are over.

import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { connectKeeper } from '../../src/keeper/connect.ts';
import { openHome } from '../../src/keeper/home.ts';
import type { KeeperLink } from '../../src/keeper/link.ts';
import { HoldfastError } from '../../src/protocol/errors.ts';
import { commandOf, readEntry } from '../../src/system/proc-table.ts';
import { onCleanup, OWNER, stopKeeper, temporaryFolder } from '../support/hosts.ts';
import { inject, type Injection } from './injection.ts';
import type { FaultRow } from './matrix.ts';
import { doWork, newRound, type Round } from './work.ts';

export interface Told {
  readonly fault: string;
  readonly calls: number;
  readonly failed: number;
  readonly refused: Readonly<Record<string, number>>;
  readonly wrong: readonly string[];
}

export interface Session extends Injection, Pick<FaultRow, 'sameLinks' | 'journals'> {
  /** Of the call: after so many the session is over. */
  readonly occurrences: number;
  /** Of work, at most. */
  readonly rounds: number;
}

/** After so many rounds without a fault whatever was under way is over. */
const SETTLING_ROUNDS = 20;
const WARM_UP_ROUNDS = 3;
/** So that output fills several files, which are made, synced and removed; and a TERM that did not arrive costs little. */
const LIMITS = { journalBytes: 1024 * 1024, journalHeadBytes: 256 * 1024, graceMs: 500 };
/** Opened by libuv when a connection could not be taken in for want of a descriptor, so that the next one can be refused. */
const RESERVE = '/';
const JOURNAL = 'journal';

export class Campaign {
  private keeper: { readonly link: KeeperLink; readonly home: string } | undefined;
  private usual: ReadonlyMap<string, number> = new Map();
  private logged = 0;
  private readonly short: boolean;

  /** `short`: rounds of work are without what takes longest. */
  constructor(short: boolean) {
    this.short = short;
  }

  async run(session: Session): Promise<Told> {
    const fault = `${session.call} ${session.error} ${session.when}`;
    const { link, home } = await this.opened();
    const { pid } = link.keeper;
    const round = newRound();
    const journals = join(home, 'journals');
    const paths = readdirSync(journals).map((name) => join(journals, name));
    const injection = { ...session, ...(session.journals && { paths }) };
    const faults = await inject(pid, injection, join(home, 'strace.txt'));
    let injected;
    const { sameLinks = false } = session;
    const work = { link, socket: openHome(home).socket, sameLinks, short: this.short };
    try {
      for (let turn = 0; turn < session.rounds; turn += 1) {
        await doWork(work, round);
        if (faults.soFar().calls >= session.occurrences) break;
      }
    } finally {
      injected = await faults.detach();
    }
    const refused = Object.fromEntries(round.refused);
    const wrong = [...new Set(round.wrong), ...this.logLines(home)];
    wrong.push(...(await this.afterwards()));
    return { fault, ...injected, refused, wrong };
  }

  /** Milliseconds of processor time that the keeper uses in a second in which nobody asks it anything. */
  async idleMs(): Promise<number> {
    const { link } = await this.opened();
    const used = (): number => {
      const stat = readFileSync(`/proc/${link.keeper.pid}/stat`, 'latin1');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return (Number(fields[11]) + Number(fields[12])) * 10;
    };
    const before = used();
    await new Promise((resolve) => setTimeout(resolve, 1000));
    return used() - before;
  }

  /** What is left of the faults: processes, descriptors, a keeper that does not do its work any more. */
  private async afterwards(): Promise<string[]> {
    if (!this.keeper) return [];
    const { home } = this.keeper;
    const wrong: string[] = [];
    try {
      if (!isThere(this.keeper.link.keeper.pid))
        throw new Error(
          `the keeper has ended: ${readFileSync(openHome(home).log, 'utf8').slice(-2000)}`,
        );
      // Its connection may have been cut.
      const link = await connectKeeper({ home, env: {}, startIfMissing: false });
      await this.keeper.link.close();
      this.keeper = { link, home };
      await removeAll(link);
      wrong.push(...(await this.cleanRounds(link, home)));
    } catch (error) {
      wrong.push(`afterwards: ${error instanceof Error ? error.message : String(error)}`);
    }
    // A keeper that is not well is not used for the next fault.
    if (wrong.length > 0) await this.close();
    return wrong;
  }

  private async cleanRounds(link: KeeperLink, home: string): Promise<string[]> {
    let left: string[] = [];
    for (let turn = 0; turn < SETTLING_ROUNDS; turn += 1) {
      const round = newRound();
      await this.cleanRound(link, home, round);
      await removeAll(link);
      const refused = refusals(round).map((code) => `refused: ${code}`);
      const wrong = [...round.wrong, ...refused, ...this.logLines(home)];
      if (wrong.length > 0) return wrong.map((text) => `afterwards: ${text}`);
      const { pid } = link.keeper;
      left = [...moreThan(this.allowed(home), descriptors(pid)), ...children(pid)];
      if (left.length === 0) return [];
    }
    return left.map((text) => `left behind: ${text}`);
  }

  private cleanRound(link: KeeperLink, home: string, round: Round): Promise<void> {
    const { socket } = openHome(home);
    return doWork({ link, socket, sameLinks: false, short: this.short }, round);
  }

  private async opened(): Promise<{ link: KeeperLink; home: string }> {
    if (this.keeper) return this.keeper;
    const home = temporaryFolder();
    const link = await connectKeeper({
      home,
      env: process.env,
      keeperArgs: ['--idle-ms', '600000', '--limits', JSON.stringify(LIMITS)],
    });
    onCleanup(() => stopKeeper(home));
    this.keeper = { link, home };
    this.logged = statSync(openHome(home).log).size;
    const most = new Map<string, number>();
    for (let turn = 0; turn < WARM_UP_ROUNDS; turn += 1) {
      const round = newRound();
      await this.cleanRound(link, home, round);
      await removeAll(link);
      if (round.wrong.length > 0 || refusals(round).length > 0)
        throw new Error(`without any fault: ${JSON.stringify([round.wrong, [...round.refused]])}`);
      for (const [kind, count] of descriptors(link.keeper.pid))
        most.set(kind, Math.max(count, most.get(kind) ?? 0));
    }
    this.usual = most;
    return this.keeper;
  }

  /** When no process is known, every journal is one that waits for the next start, and held open once. */
  private allowed(home: string): ReadonlyMap<string, number> {
    return new Map([...this.usual, [JOURNAL, readdirSync(join(home, 'journals')).length]]);
  }

  async close(): Promise<void> {
    if (!this.keeper) return;
    const { link, home } = this.keeper;
    this.keeper = undefined;
    await link.close();
    await stopKeeper(home);
  }

  /** What the keeper has said since the last look about mistakes of its own. */
  private logLines(home: string): string[] {
    const text = readFileSync(openHome(home).log, 'utf8');
    const lines = text.slice(this.logged).split('\n');
    this.logged = text.length;
    const unexpected = lines.flatMap((line, at) =>
      line.includes('unexpected: ')
        ? [`log: ${line.slice(25)} ${lines[at + 1]?.trim() ?? ''}`]
        : [],
    );
    return [...new Set(unexpected)];
  }
}

/** Also what was started although its caller was refused. */
async function removeAll(link: KeeperLink): Promise<void> {
  const { processes } = await link.list(OWNER, { limit: 1000 });
  for (const { id } of processes) {
    try {
      await link.remove(OWNER, { id, force: true });
    } catch (error) {
      if (!(error instanceof HoldfastError && error.code === 'not_found')) throw error;
    }
  }
}

/** Refusals that no fault explains; that a busy machine took too long says nothing about the keeper. */
function refusals({ refused }: Round): string[] {
  return [...refused.keys()].filter((code) => code !== 'not_answering');
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** By kind, with numbers and names left out. */
function descriptors(pid: number): Map<string, number> {
  const found = new Map<string, number>();
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    const kind = kindOf(`/proc/${pid}/fd/${fd}`);
    if (kind !== undefined) found.set(kind, (found.get(kind) ?? 0) + 1);
  }
  return found;
}

function kindOf(link: string): string | undefined {
  try {
    const target = readlinkSync(link);
    if (target === RESERVE) return undefined;
    return /\/journals\/[^/ ]*$/.test(target) ? JOURNAL : target.replaceAll(/\d+/g, 'N');
  } catch {
    // Closed since it was listed.
    return undefined;
  }
}

function moreThan(usual: ReadonlyMap<string, number>, now: ReadonlyMap<string, number>): string[] {
  return [...now].flatMap(([kind, count]) => {
    const most = usual.get(kind) ?? 0;
    return count > most ? [`${count} instead of ${most} descriptors of ${kind}`] : [];
  });
}

function children(pid: number): string[] {
  const found = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1').trim().split(' '),
  );
  return found.filter(Boolean).map((child) => {
    const { state, parent } = readEntry(Number(child)) ?? {};
    return `child ${child} (${state}, of ${parent}): ${commandOf(Number(child))}`;
  });
}
