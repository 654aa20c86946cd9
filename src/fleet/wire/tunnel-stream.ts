// One end of a byte stream over NATS. The receiver says how far the sender may send, so no message piles up in the client of
// NATS, which reads without pausing. NATS may lose messages: each names its place, and a stream that lacks one is destroyed.

import { Duplex } from 'node:stream';
import * as v from 'valibot';
import type { Clock } from '../../base/clock.ts';
import { ceiling } from '../../protocol/confinement/input.ts';
import { decodeFrame } from '../../keeper/frames.ts';

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const text = v.pipe(v.string(), v.maxLength(1024));

const opening = v.object({
  owner: text,
  /** Of the caller's token at the gateway. */
  tokenId: text,
  /** The server of the host that it is meant for, and until when on its monotonic clock. */
  boot: text,
  untilMs: v.number(),
  /** What the caller's tokens at the gateway allow. */
  ceiling: v.optional(ceiling),
});

const message = v.union([
  /** Bytes, and how many were sent before them. */
  v.object({ at: count, bytes: v.instance(Buffer) }),
  /** How many bytes may be sent in all. */
  v.object({ grant: count }),
  /** A sign of life, with the number of bytes that have been sent. */
  v.object({ sent: count }),
  /** Every byte has been sent: their number. */
  v.object({ end: count }),
  v.object({ close: text }),
  v.object({ open: opening }),
]);

export type TunnelOpening = v.InferOutput<typeof opening>;
export type TunnelMessage = v.InferOutput<typeof message>;

/** Undefined for bytes that are no message of a tunnel. */
export function readTunnelMessage(bytes: Buffer): TunnelMessage | undefined {
  try {
    const parsed = v.safeParse(message, decodeFrame(bytes));
    return parsed.success ? parsed.output : undefined;
  } catch {
    return undefined;
  }
}

export interface TunnelStreamOptions {
  readonly clock: Clock;
  /** False: there is no connection. */
  readonly send: (message: TunnelMessage) => boolean;
  /** How many bytes may be under way to this end now. */
  readonly windowBytes: () => number;
}

/** Below NATS's usual limit of 1 MiB. */
const FRAME_BYTES = 256 * 1024;
/** What each end may send before the first grant. */
const FIRST_BYTES = 32 * 1024;
const ALIVE_MS = 5000;
/** Three signs of life. */
const SILENT_MS = 15_000;
const LOST = 'Bytes of the tunnel were lost.';

export class TunnelStream extends Duplex {
  private readonly options: TunnelStreamOptions;
  private sent = 0;
  private mayBeSent = FIRST_BYTES;
  private received = 0;
  private taken = 0;
  private granted = FIRST_BYTES;
  /** Received, and not taken by the reader yet. */
  private readonly incoming: Buffer[] = [];
  private wantsMore = false;
  private hasEnded = false;
  private saidEnd = false;
  /** The other end is gone: what is written has no reader. */
  private unheard = false;
  /** Bytes that wait for a grant. */
  private unsent: { bytes: Buffer; done: (error?: Error | null) => void } | undefined;
  private heardUs: number;
  private readonly cancelAlive: () => void;

  constructor(options: TunnelStreamOptions) {
    super({ allowHalfOpen: true });
    this.options = options;
    this.heardUs = options.clock.nowUs();
    let cancel: () => void;
    const later = (): void => {
      cancel = options.clock.after(ALIVE_MS, () => {
        later();
        this.lookAlive();
      });
    };
    later();
    this.cancelAlive = () => cancel();
  }

  /** A message of the other end. */
  receive(given: TunnelMessage): void {
    if (this.destroyed) return;
    this.heardUs = this.options.clock.nowUs();
    if ('bytes' in given) this.receiveBytes(given);
    else if ('grant' in given) this.mayGoTo(given.grant);
    else if ('close' in given) this.closedBy(given.close);
    else if ('end' in given) {
      this.hasEnded = true;
      this.expect(given.end);
      this.hand();
    } else if ('sent' in given) this.expect(given.sent);
  }

  /** As a socket has it: messages are sent at once anyway. */
  setNoDelay(): this {
    return this;
  }

  override _read(): void {
    this.wantsMore = true;
    this.hand();
  }

  override _write(
    chunk: Buffer,
    _encoding: BufferEncoding,
    done: (error?: Error | null) => void,
  ): void {
    this.unsent = { bytes: chunk, done };
    this.sendMore();
  }

  override _writev(
    chunks: readonly { readonly chunk: Buffer }[],
    done: (error?: Error | null) => void,
  ): void {
    const bytes = Buffer.concat(chunks.map(({ chunk }) => chunk));
    this.unsent = { bytes, done };
    this.sendMore();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.options.send({ end: this.sent });
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.cancelAlive();
    this.incoming.length = 0;
    const { unsent } = this;
    this.unsent = undefined;
    unsent?.done(error ?? new Error('The tunnel was closed.'));
    this.options.send({ close: error?.message ?? '' });
    done(error);
  }

  private receiveBytes({ at, bytes }: { readonly at: number; readonly bytes: Buffer }): void {
    if (at !== this.received) {
      this.destroy(new Error(LOST));
      return;
    }
    this.received += bytes.length;
    if (this.received > this.granted) {
      this.destroy(new Error('The other end of the tunnel sent more than it may.'));
      return;
    }
    // A copy: the memory of a message is the client's.
    this.incoming.push(Buffer.from(bytes));
    this.hand();
  }

  private expect(bytes: number): void {
    if (bytes !== this.received) this.destroy(new Error(LOST));
  }

  /** Gives the reader what it takes, and lets the sender continue. */
  private hand(): void {
    while (this.wantsMore && this.incoming.length > 0) {
      const bytes = this.incoming.shift() as Buffer;
      this.taken += bytes.length;
      this.wantsMore = this.push(bytes);
    }
    if (this.hasEnded && !this.saidEnd && this.incoming.length === 0) {
      this.saidEnd = true;
      this.push(null);
    }
    const window = this.options.windowBytes();
    if (this.granted - this.taken > window / 2 || this.hasEnded || this.destroyed) return;
    this.granted = this.taken + window;
    this.options.send({ grant: this.granted });
  }

  private mayGoTo(bytes: number): void {
    this.mayBeSent = Math.max(this.mayBeSent, bytes);
    this.sendMore();
  }

  private sendMore(): void {
    while (this.unsent) {
      const { bytes, done } = this.unsent;
      if (this.unheard) {
        this.unsent = undefined;
        done();
        return;
      }
      const size = Math.min(bytes.length, FRAME_BYTES, this.mayBeSent - this.sent);
      if (size <= 0 && bytes.length > 0) return;
      if (!this.options.send({ at: this.sent, bytes: bytes.subarray(0, size) })) {
        this.lost();
        return;
      }
      this.sent += size;
      this.unsent = size < bytes.length ? { bytes: bytes.subarray(size), done } : undefined;
      if (!this.unsent) done();
    }
  }

  /** What has come is still read; then the end. */
  private closedBy(reason: string): void {
    if (reason !== '') {
      this.destroy(new Error(reason));
      return;
    }
    this.unheard = true;
    this.hasEnded = true;
    this.sendMore();
    this.hand();
    if (!this.writableEnded) this.end();
  }

  private lookAlive(): void {
    const silentMs = (this.options.clock.nowUs() - this.heardUs) / 1000;
    if (silentMs > SILENT_MS) this.destroy(new Error('The other end of the tunnel is silent.'));
    else if (!this.options.send({ sent: this.sent })) this.lost();
  }

  private lost(): void {
    this.destroy(new Error('The connection to NATS was lost.'));
  }
}
