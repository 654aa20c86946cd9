// What has changed in the list of processes, for clients that keep a copy of it. Changes are numbered; a client asks for those
// behind the last number it has. Growth of output is noticed at the next call, so that writing output costs nothing more.

import { randomId } from '../base/ids.ts';
import { EVERYONE, type Owner } from '../protocol/host-api.ts';
import type { HeldProcess } from './process/held-process.ts';
import type { Transition } from './transitions.ts';

interface Noted {
  /** The number of the last change. */
  version: number;
  /** Its newest event at that time. */
  seq: number;
}

interface Removal {
  readonly version: number;
  readonly owner: Owner;
  readonly id: string;
}

interface ChangeQuery {
  readonly owner: Owner;
  readonly epoch: string | undefined;
  readonly after: number;
}

export interface ChangesFound {
  /** The client's copy is of another epoch: it begins anew. */
  readonly reset: boolean;
  /** In the order of their last change. */
  readonly changed: readonly HeldProcess[];
  readonly removed: readonly Removal[];
}

/** Beyond these every client begins anew. */
const MOST_REMOVALS = 10_000;

export class ListChanges {
  /** Numbers count within an epoch. */
  epoch = randomId();
  version = 0;
  private readonly noted = new Map<HeldProcess, Noted>();
  private removals: Removal[] = [];
  private readonly listeners = new Set<() => void>();

  note(event: Transition['event'], process: HeldProcess): void {
    if (event === 'forget') this.remove(process);
    else this.mark(process);
  }

  mark(process: HeldProcess): void {
    this.version += 1;
    const seq = process.journal.visibleSeq;
    this.noted.set(process, { version: this.version, seq });
    this.wake();
  }

  private remove(process: HeldProcess): void {
    if (!this.noted.delete(process)) return;
    const { owner, id } = process.facts;
    this.version += 1;
    this.removals.push({ version: this.version, owner, id });
    if (this.removals.length > MOST_REMOVALS) {
      this.epoch = randomId();
      this.removals = [];
    }
    this.wake();
  }

  /** Called after each change of a state, not after output. */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Whether more than output has changed since this client last asked. */
  hasChanged({ owner, epoch, after }: ChangeQuery): boolean {
    if (epoch !== this.epoch) return true;
    if (after >= this.version) return false;
    const concerns = ({ version }: { version: number }, of: Owner): boolean =>
      version > after && (owner === EVERYONE || owner === of);
    if (this.removals.some((removal) => concerns(removal, removal.owner))) return true;
    return Array.from(this.noted).some(([{ facts }, noted]) => concerns(noted, facts.owner));
  }

  find({ owner, epoch, after }: ChangeQuery): ChangesFound {
    this.noteGrowth();
    const reset = epoch !== this.epoch;
    const from = reset ? 0 : after;
    const changed = Array.from(this.noted)
      .filter(([{ facts }]) => owner === EVERYONE || facts.owner === owner)
      .filter(([, { version }]) => version > from)
      .sort(([, a], [, b]) => a.version - b.version)
      .map(([process]) => process);
    const removed = this.removals.filter(
      (removal) =>
        !reset && removal.version > from && (owner === EVERYONE || removal.owner === owner),
    );
    return { reset, changed, removed };
  }

  versionOf(process: HeldProcess): number {
    return this.noted.get(process)?.version ?? this.version;
  }

  private noteGrowth(): void {
    for (const [{ journal }, noted] of this.noted) {
      if (journal.visibleSeq === noted.seq) continue;
      this.version += 1;
      noted.version = this.version;
      noted.seq = journal.visibleSeq;
    }
  }

  private wake(): void {
    for (const listener of this.listeners) listener();
  }
}
