// A cgroup (version 2) for each process, below the group that this program was started in: never outside of it, because
// it may limit us. Without controllers there are no limits, but a group still tells who is in it, ends all
// of them at once, and counts their processor time.

import { createHash } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { errnoOf } from '../../base/disk.ts';
import {
  CONTROLLERS,
  readGroupUse,
  readText,
  type Controller,
  type GroupUse,
} from './group-use.ts';
import { groupOwner, keeperGroup, processGroup, serialOf } from './group-names.ts';

/** Why there is no group of our own. */
export interface NoGroups {
  readonly why: string;
}

const DELEGATE =
  'run the keeper as a systemd user unit with Delegate=yes, or in a container with writable cgroups';

/** The folder of the group that this process is in. */
export function ownGroup(
  membership = readText('/proc/self/cgroup'),
  mounts = readText('/proc/self/mountinfo'),
): string | NoGroups {
  const path = /^0::(\/.*)$/m.exec(membership)?.[1];
  // "36 35 0:30 /part/of/filesystem /mount/point options - cgroup2 …"
  const mount = mounts
    .split('\n')
    .find((line) => / - cgroup2 /.test(line))
    ?.split(' ');
  if (path === undefined || !mount) return { why: 'this kernel has no cgroup v2 mounted' };
  const [, , , root = '/', point = ''] = mount;
  const below = root !== '/' && path.startsWith(root) ? path.slice(root.length) : path;
  const folder = aroundLeaf(join(point, below));
  try {
    accessSync(join(folder, 'cgroup.procs'), constants.W_OK);
    accessSync(folder, constants.W_OK);
  } catch {
    return { why: `the cgroup ${folder} is not writable: ${DELEGATE}` };
  }
  return folder;
}

/** A server that outlives its keeper is in that keeper's leaf, and so is the next keeper, which it starts. */
function aroundLeaf(folder: string): string {
  const name = basename(folder, LEAF);
  return folder.endsWith(LEAF) && groupOwner(name) ? dirname(folder) : folder;
}

export interface GroupLimits {
  readonly memory?: number | undefined;
  readonly pids?: number | undefined;
  readonly cpus?: number | undefined;
}

/** What the name of a keeper's own group ends with. */
const LEAF = '.keeper';

/** The period of cpu.max. */
const PERIOD_US = 100_000;

export class Cgroups {
  readonly controllers: ReadonlySet<Controller>;
  /** Why a controller is missing. */
  readonly why: string;
  private readonly own: string;
  private readonly base: string;
  /** Groups of an earlier keeper with living members, by serial. */
  private readonly inherited = new Map<string, string>();
  private leaf: string | undefined;

  private constructor(own: string, key: string) {
    this.own = own;
    this.base = join(own, keeperGroup(key));
    mkdirSync(this.base, { recursive: true });
    const { enabled, why } = this.enable(this.base + LEAF);
    this.controllers = enabled;
    this.why = why;
    this.takeOver(key);
  }

  /** `home`: the state folder that the groups belong to. No other keeper uses it: its lock is held. */
  static open(home: string): Cgroups | NoGroups {
    const own = ownGroup();
    if (typeof own !== 'string') return own;
    try {
      return new Cgroups(own, keyOf(home));
    } catch (error) {
      return {
        why: `no cgroup can be made below ${own} (${errnoOf(error) ?? String(error)}): ${DELEGATE}`,
      };
    }
  }

  /** A ceiling for all processes together, in place of an earlier one. */
  limitTotal(limits: GroupLimits): void {
    const files = {
      memory: ['memory.max', 'memory.swap.max'],
      pids: ['pids.max'],
      cpu: ['cpu.max'],
    };
    for (const controller of ['memory', 'pids', 'cpu'] as const)
      for (const file of this.controllers.has(controller) ? files[controller] : [])
        tryWrite(join(this.base, file), 'max');
    this.limit(this.base, limits);
  }

  create(serial: string): void {
    mkdirSync(this.folderOf(serial), { recursive: true });
  }

  /** A descriptor to be born in the group by; to be closed after the start. */
  open(serial: string, limits: GroupLimits): number {
    const folder = this.folderOf(serial);
    try {
      return this.openLimited(folder, limits);
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error;
      // It was not made in advance.
      mkdirSync(folder, { recursive: true });
      return this.openLimited(folder, limits);
    }
  }

  private openLimited(folder: string, limits: GroupLimits): number {
    this.limit(folder, limits);
    return openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  }

  /** Pids of all members, those of groups below included; undefined if there is no such group. */
  members(serial: string): number[] | undefined {
    try {
      return membersOf(this.folderOf(serial));
    } catch (error) {
      if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENODEV') return undefined;
      throw error;
    }
  }

  /** Ends all members at once, also those that fork meanwhile. False if the kernel cannot (before 5.14). */
  kill(serial: string): boolean {
    return tryWrite(join(this.folderOf(serial), 'cgroup.kill'), '1') === undefined;
  }

  /** Undefined if the group is gone. */
  use(serial: string): GroupUse | undefined {
    return readGroupUse(this.folderOf(serial), this.controllers);
  }

  /** Removes an empty group with those that its members made. One with members stays. */
  remove(serial: string): void {
    removeGroup(this.folderOf(serial));
    this.inherited.delete(serial);
  }

  /** Removes what is empty. A keeper in a group of its own goes back, or the next one would find it one deeper. */
  close(): void {
    removeNow(this.base);
    if (this.leaf === undefined) return;
    for (const controller of this.controllers)
      tryWrite(join(this.own, 'cgroup.subtree_control'), `-${controller}`);
    tryWrite(join(this.own, 'cgroup.procs'), String(process.pid));
    removeNow(this.leaf);
  }

  private folderOf(serial: string): string {
    return this.inherited.get(serial) ?? `${this.base}/${processGroup(serial)}`;
  }

  private limit(folder: string, { memory, pids, cpus }: GroupLimits): void {
    const write = (name: string, value: string): void => writeFileSync(join(folder, name), value);
    if (memory !== undefined) {
      write('memory.max', String(memory));
      // Without swap accounting there is no such file, and swap is not counted.
      tryWrite(join(folder, 'memory.swap.max'), '0');
    }
    if (pids !== undefined) write('pids.max', String(pids));
    if (cpus !== undefined)
      write('cpu.max', `${Math.max(1000, Math.round(cpus * PERIOD_US))} ${PERIOD_US}`);
  }

  /**
   * Enables controllers for our groups. A group other than the root cannot have both processes and controllers for groups
   * below it, so we move into a leaf of our own if we are alone in ours. The move comes first: with a process in the
   * group, the kernel would enable "cpu" and "pids" for threads only, and the groups below could have no process.
   */
  private enable(leaf: string): { enabled: Set<Controller>; why: string } {
    const { own } = this;
    const offered = new Set(readText(join(own, 'cgroup.controllers')).trim().split(' '));
    const wanted = CONTROLLERS.filter((name) => offered.has(name));
    const none = new Set<Controller>();
    if (wanted.length === 0)
      return { enabled: none, why: `the cgroup ${own} has no controllers: ${DELEGATE}` };
    const isRoot = readText(join(own, 'cgroup.type')) === '';
    const members = isRoot ? [] : readText(join(own, 'cgroup.procs')).trim().split('\n');
    const isEmpty = isRoot || members[0] === '';
    if (isEmpty) return this.enableAll(wanted);
    if (members.some((pid) => Number(pid) !== process.pid) || !this.moveInto(leaf))
      return {
        enabled: none,
        why: `other programs are in the cgroup ${own}, so it can limit nothing: ${DELEGATE}`,
      };
    return this.enableAll(wanted);
  }

  private moveInto(leaf: string): boolean {
    mkdirSync(leaf, { recursive: true });
    const moved = tryWrite(join(leaf, 'cgroup.procs'), String(process.pid)) === undefined;
    if (moved) this.leaf = leaf;
    else removeNow(leaf);
    return moved;
  }

  private enableAll(wanted: readonly Controller[]) {
    const enabled = new Set<Controller>();
    let why = '';
    for (const name of wanted) {
      const problem =
        tryWrite(join(this.own, 'cgroup.subtree_control'), `+${name}`) ??
        tryWrite(join(this.base, 'cgroup.subtree_control'), `+${name}`);
      if (problem === undefined) enabled.add(name);
      else
        why = `the cgroup controller ${name} cannot be used in ${this.own} (${problem}): ${DELEGATE}`;
    }
    return { enabled, why };
  }

  /**
   * Groups of keepers that have ended: empty ones are removed; those of this home with members are known from now on. A
   * keeper of another home has ended if its pid has, which we can tell in our own pid namespace only.
   */
  private takeOver(key: string): void {
    for (const name of namesIn(this.own)) {
      const owner = groupOwner(name);
      const folder = join(this.own, name);
      if (!owner || folder === this.base) continue;
      const isOurs = owner.key === key;
      if (!isOurs && (owner.pid === undefined || isRunning(owner.pid))) continue;
      for (const member of namesIn(folder)) {
        const serial = serialOf(member);
        if (serial === undefined || removeNow(join(folder, member)) || !isOurs) continue;
        this.inherited.set(serial, join(folder, member));
      }
      removeNow(folder);
      removeNow(folder + LEAF);
    }
  }
}

/** Of the folder itself: containers have different homes with the same path. */
function keyOf(home: string): string {
  const { dev, ino } = statSync(home, { bigint: true });
  return createHash('sha256').update(`${dev}:${ino}`).digest('hex').slice(0, 12);
}

/** The errno if it failed. */
function tryWrite(file: string, value: string): string | undefined {
  try {
    const fd = openSync(file, constants.O_WRONLY);
    try {
      writeFileSync(fd, value);
    } finally {
      closeSync(fd);
    }
    return undefined;
  } catch (error) {
    return errnoOf(error) ?? 'unknown';
  }
}

function membersOf(folder: string): number[] {
  const own = readFileSync(join(folder, 'cgroup.procs'), 'latin1')
    .split('\n')
    .filter(Boolean)
    .map(Number);
  return [...own, ...namesIn(folder).flatMap((name) => membersOf(join(folder, name)))];
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return [];
  }
}

function removeGroup(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    // It has members, or groups below it.
    if (errnoOf(error) === 'EBUSY') removeNow(folder);
  }
}

/** Whether it is gone. */
function removeNow(folder: string): boolean {
  for (const name of namesIn(folder)) removeNow(join(folder, name));
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    return errnoOf(error) === 'ENOENT';
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errnoOf(error) === 'EPERM';
  }
}
