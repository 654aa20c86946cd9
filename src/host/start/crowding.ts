// Which programs give way: those of an owner that runs many at once, while another owner uses the host, too. Else the other
// owner's command would wait for a processor behind all of them (ADR 41).

import type { Clock } from '../../base/clock.ts';
import type { Owner } from '../../protocol/host-api.ts';
import type { Shares } from '../shares.ts';

/** Programs of each owner, for each processor, that have the usual priority. */
const USUAL_PER_PROCESSOR = 2;
/** How long an owner without live processes counts as active after its last start. */
const ACTIVE_US = 60_000_000;

export interface CrowdingOptions {
  readonly clock: Clock;
  readonly live: Pick<Shares, 'total' | 'useOf'>;
  readonly processors: number;
}

interface LastStart {
  readonly owner: Owner;
  readonly atUs: number;
}

export class Crowding {
  private readonly options: CrowdingOptions;
  private latest: LastStart | undefined;
  /** The last one of another owner than the latest. */
  private other: LastStart | undefined;

  constructor(options: CrowdingOptions) {
    this.options = options;
  }

  /** Notes a start that counts as live already. True if its program gives way. */
  givesWay(owner: Owner): boolean {
    const { clock, live, processors } = this.options;
    const atUs = clock.nowUs();
    if (this.latest && this.latest.owner !== owner) this.other = this.latest;
    this.latest = { owner, atUs };
    const own = live.useOf(owner);
    if (own <= USUAL_PER_PROCESSOR * processors) return false;
    const isRecent = this.other !== undefined && atUs - this.other.atUs < ACTIVE_US;
    return live.total > own || isRecent;
  }
}
