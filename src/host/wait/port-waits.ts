// Waits for ports. The kernel does not report that a socket begins to listen, so we poll its tables while someone
// waits: one poll for all waits, at most every 50 ms and a tenth of the time, and less often while the processes print
// nothing.

import type { Clock } from '../../base/clock.ts';
import { SocketTables } from '../../system/ports.ts';

const LEAST_PAUSE_MS = 50;
const MOST_PAUSE_MS = 250;
/** A pause is this many times as long as the poll before it. */
const REST = 10;

interface PortWait<P> {
  readonly process: P;
  readonly port: number | undefined;
  readonly found: (port: number) => void;
}

interface PortLooksOptions<P> {
  readonly clock: Clock;
  /** A port that the process or a descendant listens on: the requested one, or any. */
  readonly listening: (
    process: P,
    port: number | undefined,
    tables: SocketTables,
  ) => number | undefined;
}

export class PortLooks<P> {
  private readonly options: PortLooksOptions<P>;
  private readonly waits = new Set<PortWait<P>>();
  private cancel: (() => void) | undefined;
  private pauseMs = LEAST_PAUSE_MS;
  private lookedUs = 0;
  private tookUs = 0;
  private tables: SocketTables | undefined;
  private readUs = 0;

  constructor(options: PortLooksOptions<P>) {
    this.options = options;
  }

  /** The state now or a moment ago: waits that begin together share one read. */
  now(process: P, port: number | undefined): number | undefined {
    const { clock, listening } = this.options;
    const beganUs = clock.nowUs();
    if (!this.tables || beganUs - this.readUs >= LEAST_PAUSE_MS * 1000) {
      this.tables = new SocketTables();
      this.readUs = beganUs;
    }
    return listening(process, port, this.tables);
  }

  /** Calls `found` once, when it listens. Returns a function that stops it. */
  add(wait: PortWait<P>): () => void {
    this.waits.add(wait);
    this.hurry();
    return () => {
      this.waits.delete(wait);
      if (this.waits.size > 0) return;
      this.cancel?.();
      this.cancel = undefined;
    };
  }

  /** A process that is waited for has printed: it may be about to listen. */
  hurry(): void {
    if (this.pauseMs === LEAST_PAUSE_MS && this.cancel) return;
    this.pauseMs = LEAST_PAUSE_MS;
    this.schedule();
  }

  private schedule(): void {
    this.cancel?.();
    this.cancel = undefined;
    if (this.waits.size === 0) return;
    const { clock } = this.options;
    const pauseUs = Math.max(this.pauseMs * 1000, this.tookUs * REST);
    const leftMs = (this.lookedUs + pauseUs - clock.nowUs()) / 1000;
    this.cancel = clock.after(Math.min(Math.max(1, Math.ceil(leftMs)), pauseUs / 1000), () =>
      this.look(),
    );
  }

  private look(): void {
    const { clock, listening } = this.options;
    this.cancel = undefined;
    const beganUs = clock.nowUs();
    const tables = new SocketTables();
    for (const wait of this.waits) {
      const port = listening(wait.process, wait.port, tables);
      if (port === undefined) continue;
      this.waits.delete(wait);
      wait.found(port);
    }
    this.lookedUs = clock.nowUs();
    this.tookUs = this.lookedUs - beganUs;
    this.pauseMs = Math.min(MOST_PAUSE_MS, this.pauseMs * 1.5);
    this.schedule();
  }
}
