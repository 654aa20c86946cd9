// Unproven connections: no request of theirs has passed the gate yet. They are let in, but not allowed to crowd: beyond
// a few, whoever has said nothing valid for a while goes first.

import type { Socket } from 'node:net';
import type { Clock } from '../../base/clock.ts';

export interface UnprovenLimits {
  /** So many may stay as long as they like, within the time limits for slow senders. */
  readonly few: number;
  /** Beyond these, one may stay so long: a burst of honest callers needs milliseconds to say who they are. */
  readonly patienceMs: number;
  /** Never more than this. */
  readonly most: number;
}

const defaults: UnprovenLimits = { few: 256, patienceMs: 1000, most: 8192 };

export class UnprovenConnections {
  private readonly limits: UnprovenLimits;
  private readonly clock: Clock;
  /** The longest here first. */
  private readonly since = new Map<Socket, number>();

  constructor(clock: Clock, limits = defaults) {
    this.clock = clock;
    this.limits = limits;
  }

  get count(): number {
    return this.since.size;
  }

  came(socket: Socket): void {
    this.since.set(socket, this.clock.nowUs());
    socket.once('close', () => this.since.delete(socket));
    this.makeRoom();
  }

  /** A request of this connection passed the gate. */
  passed(socket: Socket): void {
    this.since.delete(socket);
  }

  private makeRoom(): void {
    const { few, patienceMs, most } = this.limits;
    while (this.since.size > few) {
      const [longest] = this.since;
      if (!longest) return;
      const [socket, sinceUs] = longest;
      const waitedMs = (this.clock.nowUs() - sinceUs) / 1000;
      if (this.since.size <= most && waitedMs < patienceMs) return;
      this.since.delete(socket);
      socket.destroy();
    }
  }
}
