// Writes WebSocket frames one behind the other into a reusable buffer, so that a flood of output needs no new memory
// and one system call for many messages. The frames are unmasked, unfragmented text frames without extensions.

import type { BufferPool } from '../../../base/bytes/buffer-pool.ts';

/** A header with a 64-bit length. */
const MAX_HEAD_BYTES = 10;
const WHOLE_TEXT = 0x81;
const SIXTEEN_BITS = 126;
const SIXTY_FOUR_BITS = 127;

export class FrameBlock {
  private readonly pool: BufferPool;
  private readonly write: (bytes: Buffer, done: () => void) => void;
  private block: Buffer | undefined;
  private used = 0;

  /** `write` sends bytes and calls `done` when they are no longer needed. */
  constructor(pool: BufferPool, write: (bytes: Buffer, done: () => void) => void) {
    this.pool = pool;
    this.write = write;
  }

  /** Begins a frame and returns the buffer for its payload. */
  frame(bytes: number): Buffer {
    const needed = MAX_HEAD_BYTES + bytes;
    if (this.block && this.used + needed > this.block.length) this.flush();
    this.block ??= needed <= this.pool.size ? this.pool.take() : Buffer.allocUnsafeSlow(needed);
    const at = this.used + writeHead(this.block, this.used, bytes);
    this.used = at + bytes;
    return this.block.subarray(at, this.used);
  }

  /** Sends the frames so far. */
  flush(): void {
    const { block } = this;
    if (!block) return;
    this.write(block.subarray(0, this.used), () => this.pool.give(block));
    this.block = undefined;
    this.used = 0;
  }
}

function writeHead(into: Buffer, at: number, bytes: number): number {
  into[at] = WHOLE_TEXT;
  if (bytes < SIXTEEN_BITS) {
    into[at + 1] = bytes;
    return 2;
  }
  if (bytes < 65_536) {
    into[at + 1] = SIXTEEN_BITS;
    into.writeUInt16BE(bytes, at + 2);
    return 4;
  }
  into[at + 1] = SIXTY_FOUR_BITS;
  into.writeUInt32BE(0, at + 2);
  into.writeUInt32BE(bytes, at + 6);
  return MAX_HEAD_BYTES;
}
