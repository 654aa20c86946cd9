// The times of a recording: at another speed, and with long pauses shortened.

export interface Pace {
  /** 2 is twice as fast; 1 by default. */
  readonly speed?: number;
  /** Pauses are shortened to this, before the speed is applied; by default not at all. */
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

  /**
   * The time of the event in the recording, in milliseconds. The first call is its beginning; time never runs
   * backwards.
   */
  at(atUs: number): number {
    const stepUs = Math.max(0, atUs - (this.lastUs ?? atUs));
    this.lastUs = Math.max(this.lastUs ?? atUs, atUs);
    this.passedUs += Math.min(stepUs, this.idleLimitUs);
    return this.passedUs / 1000 / this.speed;
  }
}
