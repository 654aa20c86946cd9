// Spawns programs, a few of each owner at a time: a burst of one owner delays no start of another.

import { FairTurns } from '../../base/fair-turns.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Owner } from '../../protocol/host-api.ts';
import type { LaunchPlan } from '../../protocol/process.ts';
import type { Child } from '../child/child.ts';
import type { Children } from '../child/children.ts';
import type { ConfinedChild, ConfinedStart, ResourceControl } from '../limits/resource-control.ts';
import type { SpareJournals } from './spare-journals.ts';

export interface SpawnerOptions {
  readonly children: Children;
  readonly control: ResourceControl;
  readonly spares: SpareJournals;
}

/**
 * Of one owner. A spawn holds one of libuv's four threads until the program begins, and one thread is left to the others. The
 * kernel makes sandboxes one at a time.
 */
const SPAWNS_UNDER_WAY = 3;

export class Spawner {
  private readonly options: SpawnerOptions;
  private readonly turns = new FairTurns({ perOwner: SPAWNS_UNDER_WAY });

  constructor(options: SpawnerOptions) {
    this.options = options;
  }

  /** Resolves when the program is spawned; the turn of its owner ends when its sandbox is ready, too. */
  async spawn(start: ConfinedStart & { readonly owner: Owner }): Promise<ConfinedChild> {
    const { owner } = start;
    const turn = this.turns.pass(owner);
    if (turn) await turn;
    let confined: ConfinedChild | undefined;
    try {
      confined = await this.options.control.confine(start, (plan) => this.spawnOnce(plan));
      return confined;
    } finally {
      if (confined?.ready) void confined.ready.then(() => this.turns.done(owner));
      else this.turns.done(owner);
    }
  }

  private async spawnOnce(plan: LaunchPlan): Promise<Child> {
    const { children, spares } = this.options;
    try {
      return await children.start(plan);
    } catch (error) {
      const isFull = error instanceof HoldfastError && error.code === 'too_many_files';
      // Give up spare journals for the program's descriptors.
      if (!isFull || !spares.shed()) throw error;
      return children.start(plan);
    }
  }
}
