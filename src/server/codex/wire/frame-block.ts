// WebSocket frames one behind the other in one block of memory, which is used again when it has left: floods of output
// cost no new memory, and one system call for many messages. The frames are those of a server
// on a connection without extensions: whole, text, not masked.

import type { BufferPool } from '../../../base/bytes/buffer-pool.ts';

/** Of a frame whose length needs 64 bits. */
const LONGEST_HEAD_BYTES = 10;
const WHOLE_TEXT = 0x81;
const SIXTEEN_BITS = 126;
const SIXTY_FOUR_BITS = 127;

export class FrameBlock {
  private readonly pool: BufferPool;
  private readonly write: (bytes: Buffer, done: () => void) => void;
  private block: Buffer | undefined;
  private used = 0;

  /** `write` sends bytes and says when they are no longer needed. */
  constructor(pool: BufferPool, write: (bytes: Buffer, done: () => void) => void) {
    this.pool = pool;
    this.write = write;
  }

  /** Begins a frame; the answer is where its payload goes. */
  frame(bytes: number): Buffer {
    const needed = LONGEST_HEAD_BYTES + bytes;
    if (this.block && this.used + needed > this.block.length) this.leave();
    this.block ??= needed <= this.pool.size ? this.pool.take() : Buffer.allocUnsafeSlow(needed);
    const at = this.used + writeHead(this.block, this.used, bytes);
    this.used = at + bytes;
    return this.block.subarray(at, this.used);
  }

  /** Sends what there is. */
  leave(): void {
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
  return LONGEST_HEAD_BYTES;
}
