// Filters output by line: whole lines that match pass unchanged. The match ignores escape sequences.

import { stripAnsi } from '../../base/bytes/ansi.ts';
import type { Stream } from '../../protocol/event.ts';

const LF = 10;
/** An unfinished line that is longer is matched as it is. */
const MAX_LINE_BYTES = 1024 * 1024;

export interface Line {
  readonly stream: Stream;
  readonly bytes: Buffer;
}

export class LineFilter {
  private readonly pattern: RegExp;
  private readonly unfinished = new Map<Stream, Buffer[]>();

  constructor(pattern: RegExp) {
    this.pattern = pattern;
  }

  push(stream: Stream, bytes: Buffer): Line[] {
    const found: Line[] = [];
    let from = 0;
    for (let at = bytes.indexOf(LF); at >= 0; at = bytes.indexOf(LF, from)) {
      this.match(stream, bytes.subarray(from, at + 1), found);
      from = at + 1;
    }
    if (from === bytes.length) return found;
    const rest = Buffer.from(bytes.subarray(from));
    const held = [...(this.unfinished.get(stream) ?? []), rest];
    this.unfinished.set(stream, held);
    if (held.reduce((total, each) => total + each.length, 0) >= MAX_LINE_BYTES)
      this.match(stream, Buffer.alloc(0), found);
    return found;
  }

  /** The last line may have no line break. */
  end(): Line[] {
    const found: Line[] = [];
    for (const stream of this.unfinished.keys()) this.match(stream, Buffer.alloc(0), found);
    return found;
  }

  private match(stream: Stream, rest: Buffer, found: Line[]): void {
    const bytes = Buffer.concat([...(this.unfinished.get(stream) ?? []), rest]);
    this.unfinished.delete(stream);
    const text = stripAnsi(bytes.toString('utf8')).replace(/\r?\n$/, '');
    if (this.pattern.test(text)) found.push({ stream, bytes });
  }
}
