// Connections on which no request has passed the gate yet. They are accepted, but above a soft limit the oldest ones
// are closed.

import type { Socket } from 'node:net';
import type { Clock } from '../../base/clock.ts';

export interface UnprovenLimits {
  /** Up to this many may stay, within the timeouts for slow senders. */
  readonly softLimit: number;
  /** Above the soft limit, a connection may stay this long: honest clients send their token within milliseconds. */
  readonly patienceMs: number;
  /** Never more than this. */
  readonly hardLimit: number;
}

const defaults: UnprovenLimits = { softLimit: 256, patienceMs: 1000, hardLimit: 8192 };

export class UnprovenConnections {
  private readonly limits: UnprovenLimits;
  private readonly clock: Clock;
  /** Oldest first. */
  private readonly since = new Map<Socket, number>();

  constructor(clock: Clock, limits = defaults) {
    this.clock = clock;
    this.limits = limits;
  }

  get count(): number {
    return this.since.size;
  }

  add(socket: Socket): void {
    this.since.set(socket, this.clock.nowUs());
    socket.once('close', () => this.since.delete(socket));
    this.evict();
  }

  /** A request of this connection passed the gate. */
  markProven(socket: Socket): void {
    this.since.delete(socket);
  }

  private evict(): void {
    const { softLimit, patienceMs, hardLimit } = this.limits;
    while (this.since.size > softLimit) {
      const [longest] = this.since;
      if (!longest) return;
      const [socket, sinceUs] = longest;
      const waitedMs = (this.clock.nowUs() - sinceUs) / 1000;
      if (this.since.size <= hardLimit && waitedMs < patienceMs) return;
      this.since.delete(socket);
      socket.destroy();
    }
  }
}
