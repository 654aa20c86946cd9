// The numbers of lines that a search passes. Counted only when asked for: it takes about a nanosecond per byte.

import type { LineBlock } from './line-blocks.ts';

const LF = 0x0a;

/** Blocks come in order, from the first byte of the output on, without a jump. */
export class LineNumbers {
  private line = 1;
  private countedTo = 0;

  /** Of the line that begins at a place of the block. Asked for in rising order. */
  at(block: LineBlock, start: number): number {
    const from = Math.max(0, this.countedTo - block.offset);
    for (let at = from; at < start; at += 1) if (block.bytes[at] === LF) this.line += 1;
    this.countedTo = Math.max(this.countedTo, block.offset + start);
    return this.line;
  }

  pass(block: LineBlock): void {
    const end = block.bytes.length;
    this.at(block, end);
    if (block.next === block.offset + end) return;
    // The break behind its last line.
    this.line += 1;
    this.countedTo = block.next;
  }
}
