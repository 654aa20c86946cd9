// Line blocks: a byte source cut into portions for matching. A portion is either some whole lines, or one piece of a
// line that is longer than a piece. Pieces of a line lie at fixed distances from its start and overlap, so that the
// portions, and with them what is found, do not depend on how the source hands out its bytes.

import type { ByteSource } from './byte-source.ts';

export interface LineBlock {
  /** Of the first byte, in the source. */
  readonly offset: number;
  /** Without the break behind the last line. */
  readonly bytes: Buffer;
  /** Start of the (first) line; before `offset` in the later pieces of a long line. */
  readonly lineStart: number;
  /** Start of what follows: behind the line break, if there is one. */
  readonly next: number;
  /** A piece whose line goes on behind it. */
  readonly more: boolean;
  /** The last line is the last of the source and may still grow. */
  readonly open: boolean;
}

export interface BlockRange {
  readonly from: number;
  readonly to: number;
  /** Start of the line that `from` lies in. */
  readonly lineStart: number;
}

export interface PieceSize {
  readonly bytes: number;
  readonly overlap: number;
}

/** At most so many bytes at once: what a block costs, a thread is held up for. */
export const BLOCK_BYTES = 256 * 1024;
const LF = 0x0a;

export class LineBlocks {
  /** Bytes that were jumped over so far. */
  missedBytes = 0;
  /** Start of what has not been handed out for good: an incomplete line, or the last piece of one. */
  offset: number;
  lineStart: number;
  private readonly source: ByteSource;
  private readonly to: number;
  private readonly piece: PieceSize;
  private at: number;
  private held: Buffer = Buffer.alloc(0);
  /** Read already, but behind a jump: a line break stands between it and what is held. */
  private behindJump: { readonly offset: number; readonly bytes: Buffer } | undefined;

  constructor(source: ByteSource, range: BlockRange, piece: PieceSize) {
    this.source = source;
    this.to = range.to;
    this.piece = piece;
    this.at = range.from;
    this.offset = range.from;
    this.lineStart = range.lineStart;
  }

  async next(): Promise<LineBlock | undefined> {
    for (;;) {
      const block = this.cut();
      if (block !== undefined) return block;
      if (this.behindJump === undefined && (await this.fill())) continue;
      if (this.held.length > 0) return this.last();
      if (this.behindJump === undefined) return undefined;
      this.jump(this.behindJump);
    }
  }

  /** Reads until a block is full, so that many small answers do not become many small blocks. False at an end. */
  private async fill(): Promise<boolean> {
    const parts = [this.held];
    let size = this.held.length;
    while (size < BLOCK_BYTES && this.at < this.to) {
      const answer = await this.source.read(
        this.at,
        Math.min(BLOCK_BYTES - size, this.to - this.at),
      );
      const offset = Math.min(answer?.offset ?? this.to, this.to);
      const bytes = answer?.bytes.subarray(0, this.to - offset) ?? Buffer.alloc(0);
      if (offset > this.at) {
        this.behindJump = { offset, bytes };
        break;
      }
      parts.push(bytes);
      size += bytes.length;
      this.at += bytes.length;
    }
    if (size === this.held.length) return false;
    this.held = Buffer.concat(parts, size);
    return true;
  }

  private jump(to: { readonly offset: number; readonly bytes: Buffer }): void {
    this.missedBytes += to.offset - this.at;
    this.at = to.offset + to.bytes.length;
    this.offset = to.offset;
    this.lineStart = to.offset;
    this.held = to.bytes;
    this.behindJump = undefined;
  }

  /** A block out of what is held, if that is enough for one. */
  private cut(): LineBlock | undefined {
    const { bytes: most } = this.piece;
    if (this.offset > this.lineStart) return this.cutPiece();
    let end = 0;
    while (end < this.held.length) {
      const at = this.held.lastIndexOf(LF, end + most);
      if (at < end) break;
      end = at + 1;
    }
    if (end > 0) return this.take(end - 1, end, false);
    return this.cutPiece();
  }

  private cutPiece(): LineBlock | undefined {
    const { bytes: most, overlap } = this.piece;
    const at = this.held.subarray(0, most + 1).indexOf(LF);
    if (at >= 0) return this.take(at, at + 1, false);
    if (this.held.length <= most) return undefined;
    return this.take(most, most - overlap, true);
  }

  /** Hands out the first `length` bytes and goes on at `advance`. */
  private take(length: number, advance: number, more: boolean): LineBlock {
    const { offset, lineStart } = this;
    const bytes = this.held.subarray(0, length);
    this.held = this.held.subarray(advance);
    this.offset = offset + advance;
    if (!more) this.lineStart = this.offset;
    return {
      offset,
      bytes,
      lineStart,
      next: offset + Math.max(length, advance),
      more,
      open: false,
    };
  }

  /** What is left before a jump is a line; at the end of the source it is the line that may still grow. */
  private last(): LineBlock {
    const { offset, lineStart } = this;
    const bytes = this.held;
    const open = this.behindJump === undefined;
    this.held = Buffer.alloc(0);
    const next = offset + bytes.length;
    if (!open) {
      this.offset = next;
      this.lineStart = next;
    }
    return { offset, bytes, lineStart, next, more: false, open };
  }
}
