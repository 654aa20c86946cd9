// Takes patterns out of a stream of bytes, however the stream is cut. What may still become a pattern is held back; an
// unfinished control sequence shows nothing on a terminal, so nobody misses it meanwhile.

export interface Pattern {
  /** Where one may begin at or behind `from`, its beginning perhaps cut off by the end of the bytes; -1 for nowhere. */
  find(bytes: Buffer, from: number): number;
  /** How long the one that begins at `at` is; `more` when that cannot be said yet; undefined when there is none. */
  match(bytes: Buffer, at: number): number | 'more' | undefined;
  /** It has been taken out, just here. The bytes are only lent. */
  found(bytes: Buffer): void;
}

export class ByteScanner {
  /** May be changed between and during calls. */
  readonly patterns = new Set<Pattern>();
  private held: Buffer | undefined;
  private readonly pass: (bytes: Buffer) => void;

  /** `pass` is given everything else, in order. */
  constructor(pass: (bytes: Buffer) => void) {
    this.pass = pass;
  }

  push(bytes: Buffer): void {
    const data = this.held ? Buffer.concat([this.held, bytes]) : bytes;
    this.held = undefined;
    let passed = 0;
    for (let from = 0; from < data.length;) {
      const at = this.next(data, from);
      if (at < 0) break;
      const found = this.at(data, at);
      if (found === undefined) {
        from = at + 1;
        continue;
      }
      if (at > passed) this.pass(data.subarray(passed, at));
      passed = at;
      if (found === 'more') {
        // Copied: what was pushed is only lent.
        this.held = Buffer.from(data.subarray(at));
        return;
      }
      found.pattern.found(data.subarray(at, at + found.length));
      passed = from = at + found.length;
    }
    if (passed < data.length) this.pass(data.subarray(passed));
  }

  /** Nothing follows: what was held back is passed on as it is. */
  end(): void {
    const { held } = this;
    this.held = undefined;
    if (held) this.pass(held);
  }

  private next(data: Buffer, from: number): number {
    let first = -1;
    for (const pattern of this.patterns) {
      const at = pattern.find(data, from);
      if (at >= 0 && (first < 0 || at < first)) first = at;
    }
    return first;
  }

  /** Several patterns may begin alike: the one that is there, else one that may still be. */
  private at(data: Buffer, at: number): { pattern: Pattern; length: number } | 'more' | undefined {
    let more = false;
    for (const pattern of this.patterns) {
      if (pattern.find(data, at) !== at) continue;
      const length = pattern.match(data, at);
      if (typeof length === 'number') return { pattern, length };
      more ||= length === 'more';
    }
    return more ? 'more' : undefined;
  }
}

/** Where `needle` stands at or behind `from`, or where the bytes end with a beginning of it. */
export function findStart(bytes: Buffer, needle: Buffer, from: number): number {
  const at = bytes.indexOf(needle, from);
  if (at >= 0) return at;
  const [first = 0] = needle;
  const tail = Math.max(from, bytes.length - needle.length + 1);
  for (let start = bytes.indexOf(first, tail); start >= 0; start = bytes.indexOf(first, start + 1))
    if (bytes.compare(needle, 0, bytes.length - start, start) === 0) return start;
  return -1;
}
