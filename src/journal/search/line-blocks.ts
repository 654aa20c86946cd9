// Splits a byte source into blocks for matching. A block is either several whole lines, or one piece of a long line. The
// pieces of a line are at fixed distances from its start and overlap, so that the result does not depend on how the source
// returns its bytes.

import type { ByteSource } from './byte-source.ts';

export interface LineBlock {
  /** Offset of the first byte in the source. */
  readonly offset: number;
  /** Without the line break of the last line. */
  readonly bytes: Buffer;
  /** Start of the first line; before `offset` in later pieces of a long line. */
  readonly lineStart: number;
  /** Offset after the block and its line break. */
  readonly next: number;
  /** A piece whose line continues after it. */
  readonly more: boolean;
  /** The last line is the last of the source and may still grow. */
  readonly open: boolean;
}

export interface BlockRange {
  readonly from: number;
  readonly to: number;
  /** Start of the line that contains `from`. */
  readonly lineStart: number;
}

export interface PieceSize {
  readonly bytes: number;
  readonly overlap: number;
}

/** Largest block: the thread is busy for as long as a block takes. */
export const BLOCK_BYTES = 256 * 1024;
const LF = 0x0a;

export class LineBlocks {
  /** Missing bytes that were skipped so far. */
  missedBytes = 0;
  /** Start of the bytes that the next search must see again: an incomplete line, or its last piece. */
  offset: number;
  lineStart: number;
  private readonly source: ByteSource;
  private readonly to: number;
  private readonly piece: PieceSize;
  private at: number;
  private held: Buffer = Buffer.alloc(0);
  /** Read already, but after missing bytes, which count as a line break. */
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

  /** Reads until a block is full, so that small reads do not become small blocks. False at the end. */
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

  /** Makes a block of the read bytes, if there are enough. */
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

  /** Returns the first `length` bytes and continues at `advance`. */
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

  /** The rest before missing bytes is a line; at the end of the source that line may still grow. */
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
