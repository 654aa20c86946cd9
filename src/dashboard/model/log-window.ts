// A part of a log in memory: whole lines between two offsets of the output. It grows at both ends and is cut at the other one,
// so a log of any size needs the memory of a few thousand lines.

export interface LogLine {
  /** Of its first byte in the output. */
  readonly offset: number;
  readonly text: string;
  /** Instead of text: bytes that are no longer stored. */
  readonly missing?: number;
}

const LF = 10;
/** A longer line is shown in pieces. */
const MAX_LINE_BYTES = 4096;
const MOST_LINES = 20_000;

export class LogWindow {
  /** Whole lines. */
  readonly lines: LogLine[] = [];
  /** Where the first line begins. */
  from: number;
  /** Behind the last byte that it has. */
  to: number;
  /** The bytes behind the last line break. */
  private rest = new Uint8Array(0);

  constructor(offset: number) {
    this.from = offset;
    this.to = offset;
  }

  /** The last line, which may not be whole yet. */
  get partial(): LogLine | undefined {
    if (this.rest.length === 0) return undefined;
    return { offset: this.to - this.rest.length, text: decode(this.rest) };
  }

  /** What was appended before is left out; what is missing in between becomes a line of its own. */
  append(offset: number, bytes: Uint8Array): void {
    const skip = Math.max(0, this.to - offset);
    if (skip >= bytes.length) return;
    if (offset > this.to) {
      this.endLine();
      this.lines.push({ offset: this.to, text: '', missing: offset - this.to });
      this.to = offset;
    }
    const added = skip === 0 ? bytes : bytes.subarray(skip);
    const start = this.to - this.rest.length;
    const all = joined(this.rest, added);
    const { lines, used } = splitLines(all, start);
    for (const line of lines) this.lines.push(line);
    this.rest = all.slice(used);
    this.to += added.length;
  }

  /** Bytes that end where this window begins. Those before their first line break are left out, unless it is the beginning. */
  prepend(offset: number, bytes: Uint8Array, isBeginning: boolean): number {
    const begin = isBeginning ? 0 : bytes.indexOf(LF) + 1;
    const { lines, used } = splitLines(bytes.subarray(begin), offset + begin);
    const left = bytes.subarray(begin + used);
    // The window began in the middle of a line.
    if (left.length > 0) lines.push({ offset: offset + begin + used, text: decode(left) });
    this.lines.unshift(...lines);
    if (lines.length > 0) this.from = offset + begin;
    return lines.length;
  }

  /** Answers how many lines went. */
  cutHead(): number {
    const surplus = this.lines.length - MOST_LINES;
    if (surplus <= 0) return 0;
    this.lines.splice(0, surplus);
    this.from = this.lines[0]?.offset ?? this.to;
    return surplus;
  }

  cutTail(): boolean {
    const surplus = this.lines.length - MOST_LINES;
    if (surplus <= 0) return false;
    const [first] = this.lines.splice(MOST_LINES, surplus);
    this.rest = new Uint8Array(0);
    this.to = first?.offset ?? this.to;
    return true;
  }

  /** The line that has this byte. */
  indexOf(offset: number): number {
    let [low, high] = [0, this.lines.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.lines[middle]?.offset ?? 0) <= offset) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }

  private endLine(): void {
    const { partial } = this;
    if (partial) this.lines.push(partial);
    this.rest = new Uint8Array(0);
  }
}

function splitLines(bytes: Uint8Array, offset: number): { lines: LogLine[]; used: number } {
  const lines: LogLine[] = [];
  let used = 0;
  for (;;) {
    const end = bytes.indexOf(LF, used);
    const length = (end < 0 ? bytes.length : end) - used;
    if (length > MAX_LINE_BYTES) {
      const piece = pieceLength(bytes.subarray(used, used + MAX_LINE_BYTES));
      lines.push({ offset: offset + used, text: decode(bytes.subarray(used, used + piece)) });
      used += piece;
    } else if (end < 0) return { lines, used };
    else {
      lines.push({ offset: offset + used, text: decode(bytes.subarray(used, end)) });
      used = end + 1;
    }
  }
}

/** Without the beginning of a character that goes on behind it. */
function pieceLength(bytes: Uint8Array): number {
  let end = bytes.length;
  while (end > bytes.length - 4 && ((bytes[end - 1] ?? 0) & 0xc0) === 0x80) end -= 1;
  return ((bytes[end - 1] ?? 0) & 0xc0) === 0xc0 ? end - 1 : bytes.length;
}

const decoder = new TextDecoder();

/** Of a line that was written over by carriage returns, what was written last. */
function decode(bytes: Uint8Array): string {
  const text = decoder.decode(bytes).replace(/\r+$/, '');
  return text.slice(text.lastIndexOf('\r') + 1);
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  if (first.length === 0) return second;
  const all = new Uint8Array(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
}
