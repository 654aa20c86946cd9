// The sentinel: a line typed after a command, for shells without marks. When the command has ended the shell runs the
// line, which prints a control string that no terminal shows. The string and the echo of the line are removed from the
// output, and nothing that only looks like them.

import { randomBytes } from 'node:crypto';
import { findStart, type Pattern } from './byte-scanner.ts';
import type { Language } from './foreground.ts';

// Control characters are what this file is about.
/* oxlint-disable no-control-regex */

const ESC = 0x1b;
const CR = 0x0d;
const LF = 0x0a;
const BACKSPACE = 0x08;
const SPACE = 0x20;
/** What a line editor prints between the characters that it echoes. */
const MAX_BETWEEN = 64;
/** The kernel echoes what is typed ahead, the line editor shows it again, and fish once more in colours. */
const MOST_ECHOES = 3;

/** Prints the status and then restores it. */
const lines: Readonly<Record<Language, (print: string) => string>> = {
  posix: (print) => ` (s=$?;${print};exit $s)`,
  fish: (print) => ` begin;set -l s $status;${print};sh -c "exit $s";end`,
  csh: (print) => ` set s=$status;${print};(exit $s)`,
};

export class Sentinel {
  readonly token: string;
  /** The text to type after the command. It begins with a space, so that many shells leave it out of their history. */
  readonly line: string;
  readonly string: Pattern;
  readonly echo: Pattern;
  readonly scrolledEcho: Pattern;

  constructor(
    onStatus: (status: number) => void,
    language: Language = 'posix',
    token = `hf${randomBytes(5).toString('base64url').slice(0, 6)}`,
  ) {
    this.token = token;
    const print = `printf '\\033\\137${this.token};%d\\033\\134' $s`;
    this.line = lines[language](print);
    this.string = new SentinelString(this.token, onStatus);
    this.echo = new SentinelEcho(this.line.trimStart());
    this.scrolledEcho = new ScrolledEcho(this.line);
  }
}

class SentinelString implements Pattern {
  private readonly start: Buffer;
  private readonly onStatus: (status: number) => void;

  constructor(token: string, onStatus: (status: number) => void) {
    this.start = Buffer.from(`\x1b_${token};`);
    this.onStatus = onStatus;
  }

  find(bytes: Buffer, from: number): number {
    return findStart(bytes, this.start, from);
  }

  match(bytes: Buffer, at: number): number | 'more' | undefined {
    const body = bytes.toString('latin1', at + this.start.length, at + this.start.length + 5);
    const whole = /^\d{1,3}\x1b\\/.exec(body);
    if (whole) return this.start.length + whole[0].length;
    return bytes.length <= at + this.start.length || /^\d{0,3}\x1b?$/.test(body)
      ? 'more'
      : undefined;
  }

  found(bytes: Buffer): void {
    this.onStatus(Number.parseInt(bytes.toString('latin1', this.start.length), 10));
  }
}

class SentinelEcho implements Pattern {
  private readonly line: Buffer;
  private left = MOST_ECHOES;

  constructor(line: string) {
    this.line = Buffer.from(line);
  }

  find(bytes: Buffer, from: number): number {
    return this.left === 0 ? -1 : bytes.indexOf(this.line[0] ?? 0, from);
  }

  /** A space before a carriage return is a wrap in one line editor, and part of the line in another. */
  match(bytes: Buffer, start: number): number | 'more' | undefined {
    return (
      this.matchWith(isWrap, bytes, start) ??
      this.matchWith(isRepeat, bytes, start) ??
      this.matchWith(() => false, bytes, start) ??
      this.matchWith(() => false, bytes, start, true)
    );
  }

  /** `spaceless`: an editor that draws a wrapped line again skips its spaces. */
  private matchWith(
    wraps: (bytes: Buffer, at: number) => boolean,
    bytes: Buffer,
    start: number,
    spaceless = false,
  ): number | 'more' | undefined {
    let at = start;
    let before: number | undefined;
    for (const byte of this.line) {
      if (spaceless && byte === SPACE) continue;
      for (let between = 0; bytes[at] !== byte || wraps(bytes, at); between += 1) {
        const skip = spaceless && bytes[at] === SPACE ? 1 : skipBetween(bytes, at, before);
        if (typeof skip !== 'number' || between === MAX_BETWEEN)
          return skip === 'more' ? skip : undefined;
        at += skip;
      }
      at += 1;
      before = byte;
    }
    return at - start;
  }

  found(): void {
    this.left -= 1;
  }
}

const SCROLLED = Buffer.from('\r<');
/** A shorter end of the line could be output. */
const LEAST_SCROLLED = 16;

/** On a dumb terminal readline keeps a long line in one row: it goes back, prints "<" and the end of the line. */
class ScrolledEcho implements Pattern {
  private readonly line: string;

  constructor(line: string) {
    this.line = line;
  }

  find(bytes: Buffer, from: number): number {
    return findStart(bytes, SCROLLED, from);
  }

  match(bytes: Buffer, at: number): number | 'more' | undefined {
    const start = at + SCROLLED.length;
    if (bytes.length <= start) return 'more';
    const text = bytes.toString('latin1', start, start + this.line.length);
    const length = text.search(/[\r\n]/);
    if (length < 0) return this.line.includes(text) ? 'more' : undefined;
    const isEnd = length >= LEAST_SCROLLED && this.line.endsWith(text.slice(0, length));
    return isEnd ? SCROLLED.length + length : undefined;
  }

  found(): void {}
}

/** At the right margin a line editor prints a space and goes back: not the space of the line itself. */
function isWrap(bytes: Buffer, at: number): boolean {
  return bytes[at] === SPACE && (at + 1 === bytes.length || bytes[at + 1] === CR);
}

/** Where characters are bytes the editor prints the next one instead of a space, goes back, and prints it again. */
function isRepeat(bytes: Buffer, at: number): boolean {
  return bytes[at + 1] === CR && bytes[at + 2] === bytes[at];
}

/** Length of a line end, a wrap, a step back or a control sequence; `before` is the previous character. */
function skipBetween(
  bytes: Buffer,
  at: number,
  before: number | undefined,
): number | 'more' | undefined {
  const byte = bytes[at];
  if (byte === undefined || (byte === SPACE && at + 1 === bytes.length)) return 'more';
  if (byte === CR || byte === LF) return 1;
  // At the right margin the last character is printed again.
  if (byte === BACKSPACE && at + 1 === bytes.length) return 'more';
  if (byte === BACKSPACE) return bytes[at + 1] === before ? 2 : 1;
  if (isRepeat(bytes, at)) return 2;
  if (byte === SPACE) return isWrap(bytes, at) ? 2 : undefined;
  if (byte !== ESC) return undefined;
  const text = bytes.toString('latin1', at, at + MAX_BETWEEN);
  const sequence =
    /^\x1b(?:\[[\x20-\x3f]*[\x40-\x7e]|[\x20-\x2f]+[\x30-\x7e]|[\x30-\x4f\x51-\x57\x59\x5a\x5c\x60-\x7e])/.exec(
      text,
    );
  if (sequence) return sequence[0].length;
  return /^\x1b(?:\[[\x20-\x3f]*|[\x20-\x2f]+)?$/.test(text) && text.length < MAX_BETWEEN
    ? 'more'
    : undefined;
}
