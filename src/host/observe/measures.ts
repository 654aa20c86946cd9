// What a host measures of itself: how long starts, exits and waits take, how processes ended, and what they have used.

import type { Clock } from '../../base/clock.ts';
import { Histogram, LONG_BOUNDS, QUICK_BOUNDS } from '../../base/observe/histogram.ts';
import type { Cause } from '../../protocol/confinement/confinement.ts';
import type { Measured } from '../../protocol/host-api.ts';
import type { Outcome, Usage } from '../../protocol/process.ts';

export class Measures {
  private readonly clock: Clock;
  private readonly starts = new Histogram(QUICK_BOUNDS);
  private readonly exits = new Histogram(QUICK_BOUNDS);
  private readonly waits = new Histogram(LONG_BOUNDS);
  private readonly outcomes: Record<Exclude<Outcome['kind'], 'lost'>, number> = {
    exit: 0,
    signal: 0,
    timeout: 0,
    oom: 0,
  };

  private readonly used = { userMs: 0, systemMs: 0, readBytes: 0, writtenBytes: 0 };
  private readonly limited: Partial<Record<Cause['kind'], number>> = {};

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** A process runs, and its start is stored. */
  started(begunUs: number): void {
    this.starts.add(this.clock.nowUs() - begunUs);
  }

  /** An exit can be seen this long after its root was reaped. */
  exited(outcome: Outcome | undefined, us: number): void {
    this.exits.add(us);
    if (outcome && outcome.kind !== 'lost') this.outcomes[outcome.kind] += 1;
  }

  /** Nothing of a process is left. */
  settled(usage: Usage | undefined, causes: readonly Cause[]): void {
    for (const name of ['userMs', 'systemMs', 'readBytes', 'writtenBytes'] as const)
      this.used[name] += usage?.[name] ?? 0;
    for (const { kind } of causes) this.limited[kind] = (this.limited[kind] ?? 0) + 1;
  }

  /** One for all waits: a function for each would cost memory as long as it waits. */
  readonly waited = (begunUs: number): void => this.waits.add(this.clock.nowUs() - begunUs);

  figures(): Omit<Measured, 'journals'> {
    return {
      starts: this.starts.figures(),
      exits: this.exits.figures(),
      waits: this.waits.figures(),
      outcomes: { ...this.outcomes },
      spent: { ...this.used, limited: { ...this.limited } },
    };
  }
}
