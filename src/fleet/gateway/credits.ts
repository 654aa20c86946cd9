// How much output may be under way to a gateway: the client of NATS reads its socket without ever pausing, and a server
// closes a connection whose messages pile up. So a page is asked for only when there is credit for it.

interface Waiting {
  readonly host: string;
  readonly bytes: number;
  readonly begin: () => void;
}

const KiB = 1024;

export interface CreditLimits {
  readonly hostBytes: number;
  readonly totalBytes: number;
}

const limits: CreditLimits = { hostBytes: 4096 * KiB, totalBytes: 24 * 1024 * KiB };

export class Credits {
  private readonly limits: CreditLimits;
  private readonly used = new Map<string, number>();
  private total = 0;
  /** In order. A host that has used its share delays no other. */
  private readonly waiting = new Set<Waiting>();

  constructor(given: CreditLimits = limits) {
    this.limits = given;
  }

  async during<T>(host: string, wanted: number, act: () => Promise<T>): Promise<T> {
    const bytes = Math.min(wanted, this.limits.hostBytes);
    if (this.fits(host, bytes) && this.waiting.size === 0) this.take(host, bytes);
    else await new Promise<void>((begin) => this.queue({ host, bytes, begin }));
    try {
      return await act();
    } finally {
      this.give(host, bytes);
    }
  }

  private queue(waiting: Waiting): void {
    this.waiting.add(waiting);
    this.beginWaiting();
  }

  private beginWaiting(): void {
    for (const waiting of this.waiting) {
      const { host, bytes, begin } = waiting;
      if (this.total + bytes > this.limits.totalBytes) return;
      if (!this.fits(host, bytes)) continue;
      this.waiting.delete(waiting);
      this.take(host, bytes);
      begin();
    }
  }

  private fits(host: string, bytes: number): boolean {
    const used = this.used.get(host) ?? 0;
    return used + bytes <= this.limits.hostBytes && this.total + bytes <= this.limits.totalBytes;
  }

  private take(host: string, bytes: number): void {
    this.used.set(host, (this.used.get(host) ?? 0) + bytes);
    this.total += bytes;
  }

  private give(host: string, bytes: number): void {
    const left = (this.used.get(host) ?? 0) - bytes;
    if (left > 0) this.used.set(host, left);
    else this.used.delete(host);
    this.total -= bytes;
    this.beginWaiting();
  }
}
