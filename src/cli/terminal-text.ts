// Text on its way to a terminal. What a process printed, and what it is called, may be meant to command the terminal:
// escape sequences are taken out, and every other control character is shown instead of sent.

import { stripAnsi } from '../base/ansi.ts';
import { Utf8Stream } from '../base/utf8.ts';

const ESC = '\x1b';
const DEL = 0x7f;
/** An escape sequence that is longer than this is no longer waited for; its rest is shown as text. */
const MAX_PENDING = 4096;
/** C0 without tab, line feed and carriage return; DEL; C1. */
// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;
/** All of C0 and C1, and what turns the direction of writing around. */
// oxlint-disable-next-line no-control-regex
const UNFIT_FOR_LABELS = /[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** The bytes of one stream, made fit to be looked at, however they are cut. */
export class TerminalText {
  private readonly decoder = new Utf8Stream();
  /** The current line from its last ESC on. */
  private pending = '';
  /** How much of the answer for `pending` has been given. */
  private given = 0;

  push(bytes: Uint8Array): string {
    return this.add(this.decoder.push(bytes));
  }

  /** What was held back because it might have become an escape sequence. */
  end(): string {
    return this.add(this.decoder.end()) + this.settle(false);
  }

  private add(text: string): string {
    let answer = '';
    for (let at = 0; at < text.length;) {
      const lineEnd = text.indexOf('\n', at) + 1;
      this.pending += lineEnd > 0 ? text.slice(at, lineEnd) : text.slice(at);
      if (lineEnd > 0) answer += this.settle(false);
      else answer += this.giveSoFar();
      at = lineEnd > 0 ? lineEnd : text.length;
    }
    return answer;
  }

  private giveSoFar(): string {
    const answer = stripAnsi(this.pending, true).slice(this.given);
    const escape = this.pending.lastIndexOf(ESC);
    this.pending = escape < 0 ? '' : this.pending.slice(escape);
    this.given = stripAnsi(this.pending, true).length;
    return this.pending.length > MAX_PENDING
      ? visible(answer) + this.settle(true)
      : visible(answer);
  }

  private settle(more: boolean): string {
    const answer = stripAnsi(this.pending, more).slice(this.given);
    this.pending = '';
    this.given = 0;
    return visible(answer);
  }
}

/** Lines of ours that may quote untrusted text: line breaks and tabs stay, nothing else commands the terminal. */
export function visible(text: string): string {
  return text.replace(CONTROLS, caret);
}

/** A name, a command, an argument: on one line, nothing hidden. */
export function label(text: string): string {
  return text.replace(UNFIT_FOR_LABELS, (character) => {
    if (character === '\n') return '\\n';
    if (character === '\t') return '\\t';
    if (character === '\r') return '\\r';
    const code = character.charCodeAt(0).toString(16);
    return code.length > 2 ? `\\u${code.padStart(4, '0')}` : `\\x${code.padStart(2, '0')}`;
  });
}

function caret(character: string): string {
  const code = character.charCodeAt(0);
  return code <= DEL ? `^${String.fromCharCode(code ^ 0x40)}` : `\\x${code.toString(16)}`;
}
