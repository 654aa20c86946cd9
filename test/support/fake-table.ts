// A table of processes that the test writes itself: forks, exits and reaps as the kernel does them.

import { isAlive, type ProcessEntry, type ProcessTable } from '../../src/system/proc-table.ts';

interface Change {
  readonly marker?: string | undefined;
  /** Makes a session of its own. */
  readonly leads?: boolean;
  /** In the moment of exec. */
  readonly blank?: boolean;
}

interface Row {
  entry: ProcessEntry;
  marker: string | undefined;
  blank: boolean;
}

export class FakeTable implements ProcessTable {
  readonly self = 100;
  nextPid = 101;
  ticks = 1000;
  /** How often anything was asked. */
  asked = 0;
  /** How often everybody was. */
  walks = 0;
  /** No descriptor is free. */
  shortage = false;
  /** In the order in which the kernel lists children. */
  private readonly rows = new Map<number, Row>();

  fork(parent: number, change: Change): number {
    const pid = this.nextPid++;
    const above = this.rows.get(parent);
    const { group, session } = above?.entry ?? { group: 1, session: 1 };
    this.ticks += 1;
    const entry: ProcessEntry = {
      pid,
      state: 'S',
      parent,
      group,
      session,
      terminal: 0,
      foreground: 0,
      isFork: false,
      isKernelThread: false,
      isExiting: false,
      environmentBytes: 1,
      startTicks: this.ticks++,
    };
    this.rows.set(pid, { entry, marker: above?.marker, blank: false });
    this.become(pid, change);
    return pid;
  }

  become(pid: number, { leads = false, ...change }: Change): void {
    const row = this.rows.get(pid);
    if (!row) throw new Error(`there is no process ${pid}`);
    const { entry } = row;
    if (leads) row.entry = { ...entry, session: pid, group: pid };
    Object.assign(row, change);
  }

  /** A zombie from now on; its children are given to the subreaper, behind all that it has. */
  exit(pid: number): void {
    const row = this.rows.get(pid);
    if (!row) throw new Error(`there is no process ${pid}`);
    row.entry = { ...row.entry, state: 'Z' };
    for (const child of this.listed(pid)) {
      const other = this.rows.get(child);
      if (!other) continue;
      this.rows.delete(child);
      this.rows.set(child, { ...other, entry: { ...other.entry, parent: this.self } });
    }
  }

  reap(pid: number): void {
    if (isAlive(this.rows.get(pid)?.entry)) throw new Error(`process ${pid} has not ended`);
    this.remove(pid);
  }

  remove(pid: number): void {
    this.rows.delete(pid);
  }

  allPids(): number[] {
    this.ask();
    this.walks += 1;
    return [...this.rows.keys()];
  }

  readEntry(pid: number): ProcessEntry | undefined {
    this.ask();
    return this.rows.get(pid)?.entry;
  }

  childrenOf(pid: number): number[] {
    this.ask();
    return this.listed(pid);
  }

  newChildren(isSeen: (pid: number) => boolean): number[] {
    this.ask();
    const list = this.listed(this.self);
    return list.slice(list.findLastIndex(isSeen) + 1);
  }

  markersOf(pid: number): readonly string[] | 'unknown' {
    this.ask();
    const row = this.rows.get(pid);
    if (row?.blank) return 'unknown';
    return isAlive(row?.entry) && row?.marker !== undefined ? [row.marker] : [];
  }

  commandOf(): string {
    return '';
  }

  private listed(parent: number): number[] {
    return [...this.rows].filter(([, { entry }]) => entry.parent === parent).map(([pid]) => pid);
  }

  private ask(): void {
    this.asked += 1;
    if (this.shortage) throw Object.assign(new Error('EMFILE'), { code: 'EMFILE' });
  }
}
