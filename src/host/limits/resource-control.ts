// Limits, sandboxes and cgroups of one host: what this machine can do, what a start gets, and the group of each process.

import { closeSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { DeferredBatch } from '../../base/deferred-batch.ts';
import { Turns } from '../../base/turns.ts';
import { errnoOf } from '../../base/disk.ts';
import type { AllMeans } from '../../protocol/confinement/confinement.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { EVERYONE, type Owner } from '../../protocol/host-api.ts';
import type { LaunchPlan } from '../../protocol/process.ts';
import { Cgroups, type GroupLimits, type NoGroups } from '../../system/confine/cgroups.ts';
import type { GroupUse } from '../../system/confine/group-use.ts';
import { loadPosix, type Posix } from '../../system/posix.ts';
import type { Child, ExitStatus } from '../child/child.ts';
import type { Children } from '../child/children.ts';
import type { HostOptions } from '../host-options.ts';
import { explainStart, isGroupRemoved, refuseBlindLook } from '../start/spawn-error.ts';
import { strictest, type AskedStart } from './ceilings.ts';
import { decide, type Decision } from './confiner.ts';
import type { PathSurroundings } from './file-rules.ts';
import { LimitWatch } from './limit-watch.ts';
import { examineMachine, type Machine } from './means.ts';
import { OwnerPolicies } from './owner-policies.ts';
import { Readiness } from './readiness.ts';

export interface ControlOptions {
  readonly folder: string;
  readonly clock: Clock;
  /** Undefined: programs are started through Node. */
  readonly posix: Posix | undefined;
  /** Folders with our sockets and secrets. */
  readonly hidden: readonly string[];
  /** Each process gets a cgroup of its own where that is possible. Not inside another program. */
  readonly usesGroups: boolean;
  readonly bubblewrap?: string | undefined;
  readonly start: (plan: LaunchPlan) => Promise<Child>;
}

export interface ConfinedStart {
  readonly plan: LaunchPlan;
  readonly serial: string;
  readonly decision?: Decision | undefined;
}

export interface ConfinedChild {
  readonly child: Child;
  /** Resolves when the sandbox is made and its command begins. Undefined where none has to be made. */
  readonly ready: Promise<void> | undefined;
}

export class ResourceControl {
  readonly watch: LimitWatch;
  private readonly options: ControlOptions;
  private readonly policies: OwnerPolicies;
  private groups: Cgroups | NoGroups;
  private machine: Promise<Machine> | undefined;
  private readonly emptied = new DeferredBatch<string>(
    REMOVE_MS,
    (serials) => void this.removeAll(serials),
  );

  constructor(options: ControlOptions) {
    this.options = options;
    this.watch = new LimitWatch(options.clock);
    this.policies = new OwnerPolicies(options.folder, () => options.clock.wallMs());
    this.groups = options.posix && options.usesGroups ? Cgroups.open(options.folder) : NO_GROUPS;
  }

  /** Turns groups off where no program can be born in one: old kernels and containers lack clone3. */
  async check(): Promise<void> {
    const { groups } = this;
    if (!(groups instanceof Cgroups)) return;
    const fd = groups.open(PROBE, {});
    const works = await this.succeeds([TRUE], { group: fd }).finally(() => closeSync(fd));
    groups.remove(PROBE);
    if (works) return;
    groups.close();
    this.groups = {
      why: 'no program can be born in a cgroup here: clone3 is missing or forbidden',
    };
  }

  /** What this machine can enforce. `total`: a ceiling for all processes together. */
  async means(owner: Owner, total?: GroupLimits): Promise<AllMeans> {
    if (total) this.limitTotal(owner, total);
    return (await this.examined()).means;
  }

  private limitTotal(owner: Owner, limits: GroupLimits): void {
    if (owner !== EVERYONE)
      throw new HoldfastError('forbidden', 'Only the admin limits all processes together.');
    const { groups } = this;
    const needed = { memory: 'memory', pids: 'pids', cpus: 'cpu' } as const;
    for (const name of ['memory', 'pids', 'cpus'] as const) {
      if (limits[name] === undefined) continue;
      if (groups instanceof Cgroups && groups.controllers.has(needed[name])) continue;
      const problem = `The limit "${name}" of all processes together cannot be enforced here: ${groups.why}.`;
      throw new HoldfastError('limit_unenforceable', problem, { field: `total.${name}` });
    }
    if (groups instanceof Cgroups) groups.limitTotal(limits);
  }

  /** Whether a start needs `decide`. */
  concerns(owner: Owner, asked: AskedStart): boolean {
    return (
      asked.limits !== undefined ||
      asked.sandbox !== undefined ||
      asked.ceiling !== undefined ||
      this.policies.of(owner) !== undefined
    );
  }

  async decide(owner: Owner, asked: AskedStart, surroundings: PathSurroundings): Promise<Decision> {
    const machine = await this.examined();
    const { posix, hidden, folder } = this.options;
    const visible = [join(folder, 'shells')];
    const policy = strictest(this.policies.of(owner), asked.ceiling);
    return decide(asked, { machine, posix, hidden, visible, policy, surroundings });
  }

  /** Starts a program in a cgroup of its own where there is one, and under everything that was decided. */
  async confine(
    { plan, serial, decision }: ConfinedStart,
    start: (plan: LaunchPlan) => Promise<Child>,
  ): Promise<ConfinedChild> {
    const confined = decision?.apply(plan);
    const whole = confined?.plan ?? plan;
    let group: number | undefined;
    let readiness: Readiness | undefined;
    try {
      group = this.openGroup(serial, decision?.group ?? {});
      readiness = this.readinessOf(whole);
      const [first, fence] = [group, readiness?.fence];
      const child = await start(fenced(whole, first, fence)).catch((error: unknown) => {
        if (first === undefined || !isGroupRemoved(error)) throw error;
        closeSync(first);
        group = undefined;
        group = this.openGroup(serial, decision?.group ?? {});
        return start(fenced(whole, group, fence));
      });
      return { child, ready: readiness?.reached() };
    } catch (error) {
      readiness?.giveUp();
      throw error;
    } finally {
      if (group !== undefined) closeSync(group);
      confined?.release();
    }
  }

  private readinessOf(plan: LaunchPlan): Readiness | undefined {
    const { posix } = this.options;
    if (!posix || plan.fence?.ignoresSignals !== true) return undefined;
    try {
      return new Readiness(posix);
    } catch (error) {
      throw explainStart(error, plan);
    }
  }

  private openGroup(serial: string, limits: GroupLimits): number | undefined {
    if (!(this.groups instanceof Cgroups)) return undefined;
    try {
      return this.groups.open(serial, limits);
    } catch (error) {
      refuseBlindLook(error, 'The cgroup of the process');
      const errno = errnoOf(error) ?? String(error);
      const problem = `The cgroup of the process could not be made (${errno}).`;
      throw new HoldfastError('spawn_failed', problem, { errno });
    }
  }

  prepareGroup(serial: string): void {
    if (this.groups instanceof Cgroups) this.groups.create(serial);
  }

  members(serial: string): number[] | undefined {
    return this.groups instanceof Cgroups ? this.groups.members(serial) : undefined;
  }

  /** Ends every member at once. False where that is not possible. */
  kill(serial: string): boolean {
    return this.groups instanceof Cgroups && this.groups.kill(serial);
  }

  use(serial: string): GroupUse | undefined {
    return this.groups instanceof Cgroups ? this.groups.use(serial) : undefined;
  }

  /** Soon: nobody waits for it. */
  removeGroup(serial: string): void {
    if (this.groups instanceof Cgroups) this.emptied.add(serial);
  }

  private async removeAll(serials: readonly string[]): Promise<void> {
    const turns = new Turns();
    for (const serial of serials) {
      if (this.groups instanceof Cgroups) this.groups.remove(serial);
      if (turns.isOver()) await turns.next();
    }
  }

  /** Removes every group that is empty. */
  close(): void {
    this.emptied.flush();
    if (this.groups instanceof Cgroups) this.groups.close();
  }

  private examined(): Promise<Machine> {
    const { posix, bubblewrap } = this.options;
    this.machine ??= examineMachine({
      posix,
      groups: this.groups,
      bubblewrap,
      succeeds: (argv) => this.succeeds(argv),
    });
    return this.machine;
  }

  private async succeeds(argv: readonly string[], fence?: LaunchPlan['fence']): Promise<boolean> {
    const [file = ''] = argv;
    const plan: LaunchPlan = {
      file,
      argv,
      env: ['PATH=/usr/bin:/bin'],
      cwd: '/',
      streams: 'merged',
      stdin: 'none',
      size: { cols: 80, rows: 24 },
      ...(fence && { fence }),
    };
    let child: Child;
    try {
      child = await this.options.start(plan);
    } catch {
      return false;
    }
    const status = await new Promise<ExitStatus>((exited) => {
      child.listen({ output: () => undefined, exited, ended: () => undefined });
    });
    child.release();
    return status.code === 0;
  }
}

function fenced(
  plan: LaunchPlan,
  group: number | undefined,
  ready: LaunchPlan['fence'],
): LaunchPlan {
  if (group === undefined && ready === undefined) return plan;
  return { ...plan, fence: { ...plan.fence, ...(group !== undefined && { group }), ...ready } };
}

/** Of a host: groups only in a program of its own. */
export function openControl(
  options: HostOptions,
  clock: Clock,
  children: Pick<Children, 'kind' | 'adopts' | 'start'>,
): ResourceControl {
  return new ResourceControl({
    folder: options.folder,
    clock,
    posix: children.kind === 'posix' ? loadPosix() : undefined,
    hidden: options.hidden ?? [options.folder],
    usesGroups: options.groups ?? children.adopts,
    bubblewrap: options.bubblewrap,
    start: (plan) => children.start(plan),
  });
}

/** Groups of ended processes are removed together, after the answers. */
const REMOVE_MS = 20;
const PROBE = 'probe';
const TRUE = '/bin/true';
const NO_GROUPS: NoGroups = { why: 'only a keeper gives processes a cgroup of their own' };
