// A codex connection over a WebSocket. Large answers are cut into frames that the real client accepts. A client that
// does not read gets no more output; one that does not answer pings is disconnected.

import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { BufferPool } from '../../../base/bytes/buffer-pool.ts';
import type { Clock } from '../../../base/clock.ts';
import { FrameBlock } from './frame-block.ts';
import type { Wire, WireListener } from './wire.ts';

/** The client accepts 16 MiB in one frame and 64 MiB in one message. */
const FRAME_BYTES = 8 * 1024 * 1024;
/**
 * Output is sent while less than this is buffered: a page and a half, so that the next page is fetched while one is
 * sent.
 */
const LOW_WATER_BYTES = 2 * 1024 * 1024;
/** Above this, nothing more is read from a client that does not read its answers. */
const HIGH_WATER_BYTES = 32 * 1024 * 1024;
/** The interval of codex's server. */
const PING_MS = 30_000;
/** A client that is silent for this many pings is gone. */
const MAX_MISSED_PINGS = 3;
/** A client that was heard this recently need not be asked. */
const RECENT_MS = 1000;
/** How long the answer to a ping may take when another connection wants the session. */
const PROBE_MS = 2000;

export interface SocketWireOptions {
  readonly socket: WebSocket;
  readonly stream: Duplex;
  readonly peer: string;
  readonly clock: Clock;
  /** Shared by all connections. */
  readonly blocks: BufferPool;
}

export class SocketWire implements Wire {
  readonly source: string;
  private readonly socket: WebSocket;
  private readonly stream: Duplex;
  private readonly clock: Clock;
  private readonly block: FrameBlock;
  private heardUs: number;
  private paused = false;
  private waiting: { promise: Promise<void>; resolve: () => void } | undefined;
  private cancelPing: () => void;
  private readonly listeners = new Set<() => void>();

  /** `stream` carries the WebSocket. */
  constructor({ socket, stream, peer, clock, blocks }: SocketWireOptions, listener: WireListener) {
    this.socket = socket;
    this.stream = stream;
    this.source = `websocket JSON-RPC message from exec-server websocket ${peer}`;
    this.clock = clock;
    this.heardUs = clock.nowUs();
    this.block = new FrameBlock(blocks, (bytes, done) => {
      if (!this.open) return;
      stream.write(bytes, (error) => {
        if (!error) done();
        this.sent();
      });
    });
    socket.on('message', (data: Buffer) => {
      this.heard();
      listener.received(data.toString());
    });
    socket.on('pong', () => this.heard());
    socket.on('ping', () => this.heard());
    // 'close' follows and is handled.
    socket.on('error', () => undefined);
    socket.once('close', () => {
      this.cancelPing();
      this.waiting?.resolve();
      listener.ended();
    });
    this.cancelPing = clock.after(PING_MS, () => this.ping());
  }

  send(text: string): void {
    if (!this.open) return;
    this.block.flush();
    if (text.length * 3 <= FRAME_BYTES || Buffer.byteLength(text) <= FRAME_BYTES)
      this.socket.send(text, { binary: false }, this.sent);
    else this.sendFragments(Buffer.from(text));
    if (this.socket.bufferedAmount > HIGH_WATER_BYTES) this.socket.pause();
  }

  allocate(bytes: number): Buffer {
    return this.block.frame(bytes);
  }

  batch(sending: () => void): void {
    this.stream.cork();
    sending();
    this.block.flush();
    this.stream.uncork();
  }

  private get open(): boolean {
    return this.socket.readyState === this.socket.OPEN;
  }

  backpressure(): Promise<void> | undefined {
    if (this.socket.bufferedAmount < LOW_WATER_BYTES || this.socket.readyState !== this.socket.OPEN)
      return undefined;
    if (!this.waiting) {
      let resolve = (): void => undefined;
      const promise = new Promise<void>((done) => {
        resolve = done;
      });
      this.waiting = { promise, resolve };
    }
    return this.waiting.promise;
  }

  alive(): Promise<boolean> {
    if (this.clock.nowUs() - this.heardUs < RECENT_MS * 1000) return Promise.resolve(true);
    if (this.socket.readyState !== this.socket.OPEN) return Promise.resolve(false);
    this.socket.ping();
    return new Promise((resolve) => {
      const over = (alive: boolean): void => {
        cancel();
        this.listeners.delete(heard);
        resolve(alive);
      };
      const heard = (): void => over(true);
      const cancel = this.clock.after(PROBE_MS, () => over(false));
      this.listeners.add(heard);
    });
  }

  pauseReading(paused: boolean): void {
    this.paused = paused;
    if (paused) this.socket.pause();
    else this.readOn();
  }

  drop(): void {
    this.socket.terminate();
  }

  private sendFragments(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; at += FRAME_BYTES) {
      const fin = at + FRAME_BYTES >= bytes.length;
      this.socket.send(bytes.subarray(at, at + FRAME_BYTES), { fin, binary: false }, this.sent);
    }
  }

  /** A piece was handed to the kernel. */
  private readonly sent = (): void => {
    const { bufferedAmount } = this.socket;
    this.readOn();
    if (!this.waiting || bufferedAmount >= LOW_WATER_BYTES) return;
    this.waiting.resolve();
    this.waiting = undefined;
  };

  private readOn(): void {
    if (this.paused || !this.socket.isPaused || this.socket.bufferedAmount >= HIGH_WATER_BYTES)
      return;
    this.socket.resume();
  }

  private heard(): void {
    this.heardUs = this.clock.nowUs();
    for (const listener of this.listeners) listener();
  }

  private ping(): void {
    // While nothing is read from the client, its pongs cannot arrive.
    if (this.socket.isPaused) this.heardUs = this.clock.nowUs();
    if (this.clock.nowUs() - this.heardUs > MAX_MISSED_PINGS * PING_MS * 1000) {
      this.drop();
      return;
    }
    this.socket.ping();
    this.cancelPing = this.clock.after(PING_MS, () => this.ping());
  }
}
