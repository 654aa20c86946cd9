// Removes patterns from a stream of bytes, wherever the stream is split. Bytes that may become a pattern are held back;
// an unfinished control sequence shows nothing on a terminal.

export interface Pattern {
  /**
   * The first position at or after `from` where one may begin, perhaps cut off by the end of the bytes; -1 for none.
   */
  find(bytes: Buffer, from: number): number;
  /** Length of the pattern at `at`; `more` if that is not decided yet; undefined if there is none. */
  match(bytes: Buffer, at: number): number | 'more' | undefined;
  /** Called for each removed pattern, in order. The bytes are valid only during the call. */
  found(bytes: Buffer): void;
}

export class ByteScanner {
  /** May be changed between and during calls. */
  readonly patterns = new Set<Pattern>();
  private held: Buffer | undefined;
  private readonly pass: (bytes: Buffer) => void;

  /** `pass` gets everything else, in order. */
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
        // A copy: the pushed bytes are valid only during the call.
        this.held = Buffer.from(data.subarray(at));
        return;
      }
      found.pattern.found(data.subarray(at, at + found.length));
      passed = from = at + found.length;
    }
    if (passed < data.length) this.pass(data.subarray(passed));
  }

  /** The end of the stream: held bytes are passed on unchanged. */
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

  /** Several patterns may begin alike: prefers a complete one, else one that is still possible. */
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

/** Position of `needle` at or after `from`, or of a prefix of it at the end of the bytes. */
export function findStart(bytes: Buffer, needle: Buffer, from: number): number {
  const at = bytes.indexOf(needle, from);
  if (at >= 0) return at;
  const [first = 0] = needle;
  const tail = Math.max(from, bytes.length - needle.length + 1);
  for (let start = bytes.indexOf(first, tail); start >= 0; start = bytes.indexOf(first, start + 1))
    if (bytes.compare(needle, 0, bytes.length - start, start) === 0) return start;
  return -1;
}
