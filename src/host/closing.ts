// Closes a host: ends everything that it holds. Every step has a time limit and runs whatever became of the earlier
// ones. Failures are reported, not thrown.

import type { Clock } from '../base/clock.ts';
import type { CloseReport, SignalResult } from '../protocol/host-api.ts';
import { Journal } from '../journal/write/journal.ts';
import type { Reserve } from '../journal/write/disk-reserve.ts';
import { waitUntil } from './wait/wait-until.ts';
import { signalGroup } from './descendants/descendants.ts';
import type { HeldProcess } from './process/held-process.ts';
import { commandOf } from '../system/proc-table.ts';
import type { StraysEnd } from './descendants/strays.ts';
import { KILL_MS } from './descendants/termination.ts';

/** Limit of a step that waits for a disk or a thread. */
const STEP_MS = 1000;
/** Added to the grace and the time of SIGKILL, for searches on a busy machine. */
const LOOKING_MS = 1500;

/** Limit for ending unknown orphans: slightly more than they use themselves. */
const STRAYS_MS = 2500;

const UNSEARCHED = 'descendants outside its group could not be looked for: no free file descriptor';

export class Closing {
  private readonly clock: Clock;
  private readonly problems: string[] = [];
  private readonly survivors: CloseReport['survivors'][number][] = [];
  private ended = 0;
  private strays = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  get report(): CloseReport {
    const { ended, strays, survivors, problems } = this;
    return { ended, ...(strays > 0 && { strays }), survivors, problems };
  }

  async step(what: string, act: () => unknown, withinMs = STEP_MS): Promise<void> {
    let cancel = (): void => undefined;
    const late = new Promise<string>((resolve) => {
      cancel = this.clock.after(withinMs, () => resolve(`not done within ${withinMs} ms`));
    });
    try {
      const problem = await Promise.race([attempt(act), late]);
      if (problem !== undefined) this.problem(what, problem);
    } finally {
      cancel();
    }
  }

  problem(what: string, reason: string): void {
    this.problems.push(`${what}: ${reason}`);
  }

  /** SIGTERM, the grace and SIGKILL for each of these and its descendants. */
  async end(
    processes: readonly HeldProcess[],
    graceMs: number,
    terminate: (process: HeldProcess) => Promise<SignalResult | undefined>,
  ): Promise<void> {
    const waiting = new Set(processes);
    const ends = processes.map(async (process) => {
      const problem = await attempt(async () =>
        this.noteSurvivors(process, await terminate(process)),
      );
      if (problem !== undefined) await this.endGroup(process, problem);
      waiting.delete(process);
    });
    const most = graceMs + KILL_MS + LOOKING_MS;
    await this.step('ending the processes', () => Promise.all(ends), most);
    for (const process of waiting) this.noteRoot(process);
    const alive = new Set(this.survivors.map(({ id, owner }) => `${owner} ${id}`));
    this.ended = processes.length - alive.size;
  }

  /** Ends orphans of settled processes, and reports the survivors. */
  async endStrays(end: () => Promise<StraysEnd>): Promise<void> {
    await this.step(
      'orphans',
      async () => {
        const { ended, survivors } = await end();
        this.strays = ended;
        const known = new Set(this.survivors.map(({ pid }) => pid));
        for (const { pid, command, reason } of survivors) {
          const why = reason === 'not_permitted' ? ', which belongs to another user' : '';
          if (!known.has(pid))
            this.problem('orphans', `${pid} ${command}${why}, survived; whose it was is not known`);
        }
      },
      STRAYS_MS,
    );
  }

  /** On a full disk only memory has recent outcomes. Callers have seen them, so they must not become "lost". */
  async storeOutcomes(processes: readonly HeldProcess[], reserve: Reserve): Promise<void> {
    const held = (): { id: string; journal: Journal }[] =>
      processes.flatMap(({ facts: { id }, journal }) =>
        journal instanceof Journal && journal.degraded !== undefined ? [{ id, journal }] : [],
      );
    for (const { id, journal } of held())
      await this.step(`process ${id}: storing its output`, () => journal.retry());
    const refused = held();
    if (refused.length === 0) return;
    await this.step('disk space in reserve', () => reserve.free());
    for (const { id, journal } of refused) {
      await this.step(`process ${id}: storing its outcome`, async () => {
        if (!(await journal.storeExit())) throw new Error(journal.degraded);
      });
    }
  }

  /** After an unexpected error: SIGKILL to the group of a root that we can reap needs nothing else. */
  private async endGroup(process: HeldProcess, problem: string): Promise<void> {
    this.problem(`process ${process.facts.id}`, problem);
    if (!process.rootAlive) return;
    signalGroup(process.facts.pid, 'SIGKILL');
    await waitUntil(() => !process.rootAlive || undefined, {
      clock: this.clock,
      timeoutMs: STEP_MS,
      subscribe: (wake) => process.onChange(wake),
    });
    this.noteRoot(process);
  }

  private noteSurvivors(process: HeldProcess, result: SignalResult | undefined): void {
    const { id, owner, pid } = process.facts;
    const { survivors = [], refused = [], unsearched } = result ?? {};
    const reasons = new Map(refused.map((each) => [each.pid, each.reason]));
    for (const survivor of survivors) {
      const reason = reasons.get(survivor.pid);
      this.survivors.push({ ...survivor, id, owner, ...(reason && { reason }) });
    }
    if (!survivors.some((survivor) => survivor.pid === pid)) this.noteRoot(process);
    if (unsearched) this.problem(`process ${id}`, UNSEARCHED);
  }

  private noteRoot({ rootAlive, facts }: HeldProcess): void {
    const { id, owner, pid, command } = facts;
    if (rootAlive) this.survivors.push({ id, owner, pid, command: commandOf(pid) || command });
  }
}

/** The reason why it failed; undefined if it succeeded. */
async function attempt(act: () => unknown): Promise<string | undefined> {
  try {
    await act();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
