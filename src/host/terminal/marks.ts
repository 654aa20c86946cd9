// The marks of a shell in its output: OSC 133 with the nonce of its terminal, which no program knows. See shell-marks.ts
// for the shells' side.
//
//   ESC ] 133 ; D ; NONCE ; STATUS ; CWD BEL   the command before has ended, a prompt follows
//   ESC ] 133 ; B ; NONCE BEL                  the prompt is complete: a command can be typed
//   ESC ] 133 ; B ; NONCE ; STATUS ; N BEL     the same; a prompt that is only drawn again has the N of the one before
//   ESC ] 133 ; C ; NONCE BEL                  a command begins: what follows is its output
//   ESC ] 133 ; C ; NONCE ; early BEL          the same, but the shell still sets up the terminal: see preamble.ts
//   ESC ] 133 ; E ; NONCE BEL                  its output ends; what follows until D is the shell's own
//   ESC ] 133 ; P ; NONCE BEL                  the shell asks for the rest of a command

import { findStart, type Pattern } from './byte-scanner.ts';

export type Mark =
  | { readonly kind: 'end'; readonly status: number; readonly cwd?: string }
  | { readonly kind: 'ready'; readonly status?: number; readonly count?: number }
  | { readonly kind: 'begin'; readonly early?: true }
  | { readonly kind: 'over' }
  | { readonly kind: 'more' };

const START = Buffer.from('\x1b]133;');
const BEL = 7;
const SEMICOLON = 0x3b;
/** A path has at most 4096 bytes. A longer sequence is not our mark. */
const MAX_BYTES = 4096 + 128;
const letters = { D: 'end', B: 'ready', C: 'begin', E: 'over', P: 'more' } as const;

export class MarkPattern implements Pattern {
  private readonly nonce: Buffer;
  private readonly onMark: (mark: Mark) => void;

  constructor(nonce: string, onMark: (mark: Mark) => void) {
    this.nonce = Buffer.from(`;${nonce}`);
    this.onMark = onMark;
  }

  find(bytes: Buffer, from: number): number {
    return findStart(bytes, START, from);
  }

  match(bytes: Buffer, at: number): number | 'more' | undefined {
    const letterAt = at + START.length;
    if (bytes.length <= letterAt) return 'more';
    if (!Object.hasOwn(letters, String.fromCharCode(bytes[letterAt] ?? 0))) return undefined;
    const nonceEnd = letterAt + 1 + this.nonce.length;
    const there = Math.min(bytes.length, nonceEnd);
    if (bytes.compare(this.nonce, 0, there - letterAt - 1, letterAt + 1, there) !== 0)
      return undefined;
    for (let end = nonceEnd; end < bytes.length && end - at <= MAX_BYTES; end += 1) {
      const byte = bytes[end] ?? 0;
      if (byte === BEL) return end + 1 - at;
      // A directory name that contains separators: the mark counts, its path does not.
      if (byte < 0x20) return end - at;
      if (end === nonceEnd && byte !== SEMICOLON) return undefined;
    }
    return bytes.length - at > MAX_BYTES ? undefined : 'more';
  }

  found(bytes: Buffer): void {
    const letter = String.fromCharCode(bytes[START.length] ?? 0) as keyof typeof letters;
    const kind = letters[letter];
    if (kind === 'begin') {
      this.onMark({ kind, ...(bytes.includes(';early') && { early: true }) });
      return;
    }
    if (kind === 'ready') {
      const [, status, count] =
        /;(\d{1,3})(?:;(\d{1,15}))?$/.exec(bytes.toString('latin1', 0, bytes.length - 1)) ?? [];
      this.onMark({
        kind,
        ...(status !== undefined && { status: Number(status) }),
        ...(count !== undefined && { count: Number(count) }),
      });
      return;
    }
    if (kind !== 'end') {
      this.onMark({ kind });
      return;
    }
    const whole = bytes.at(-1) === BEL;
    const body = bytes.toString(
      'utf8',
      START.length + 2 + this.nonce.length,
      bytes.length - (whole ? 1 : 0),
    );
    const [, status = '', cwd] = /^(\d{1,3});?(.*)$/s.exec(body) ?? [];
    if (status === '') return;
    this.onMark({ kind, status: Number(status), ...(whole && cwd && { cwd }) });
  }
}
