// When things happen in a recording: as they did, but faster or slower, and with long pauses cut short.

export interface Pace {
  /** 2 is twice as fast; 1 unless told. */
  readonly speed?: number;
  /** Pauses are cut to this, before the speed is applied; not at all unless told. */
  readonly idleLimitMs?: number;
}

export class Timeline {
  private readonly speed: number;
  private readonly idleLimitUs: number;
  private lastUs: number | undefined;
  private passedUs = 0;

  constructor({ speed = 1, idleLimitMs = Number.POSITIVE_INFINITY }: Pace) {
    this.speed = speed;
    this.idleLimitUs = idleLimitMs * 1000;
  }

  /** Milliseconds of the recording at which this happens. The first call is its beginning; it never goes back. */
  at(atUs: number): number {
    const stepUs = Math.max(0, atUs - (this.lastUs ?? atUs));
    this.lastUs = Math.max(this.lastUs ?? atUs, atUs);
    this.passedUs += Math.min(stepUs, this.idleLimitUs);
    return this.passedUs / 1000 / this.speed;
  }
}
