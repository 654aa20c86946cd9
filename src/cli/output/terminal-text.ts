// Makes text safe for a person's terminal. Output and names of a process may contain commands to the terminal, or
// characters that make text look like something else. Escape sequences are removed from output; every other character
// that controls, hides, reorders or breaks a line is written as an escape.

import { sequenceEnd, stripAnsi } from '../../base/bytes/ansi.ts';
import { Utf8Stream } from '../../base/bytes/utf8.ts';

const ESC = '\x1b';
const DEL = 0x7f;
/** The rest of an escape sequence that is longer is shown as text. */
const MAX_PENDING = 4096;
/**
 * In the output of a program: C0 without tab, line feed and carriage return; DEL; C1; the controls that turn the
 * direction of writing around; line and paragraph separators. Joiners and direction marks stay, because languages and
 * emoji are written with them.
 */
const UNFIT_FOR_OUTPUT =
  // oxlint-disable-next-line no-control-regex
  /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]/g;
/**
 * Everywhere else: every control and format character (the zero-width ones and all bidi controls are among them), line
 * and paragraph separators, half surrogates, and what is ignored by default, but for the two selectors that choose
 * between text and picture.
 */
const UNFIT =
  /(?![\ufe0e\ufe0f])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** SGR, the one kind of sequence that only changes how the following text looks. */
// oxlint-disable-next-line no-control-regex
const COLOUR = /^\x1b\[[\d;:]*m$/;
// oxlint-disable-next-line no-control-regex
const NO_COLOUR = /^\x1b\[0*m$/;
const COLOUR_OR_UNFIT = new RegExp(String.raw`\x1b\[[\d;:]*m|${UNFIT_FOR_OUTPUT.source}`, 'g');
export const RESET = `${ESC}[0m`;

/** Makes the bytes of one stream safe, however they are cut. */
export class TerminalText {
  /** Colours pass. */
  colours = false;
  /** A colour has passed and was not reset. */
  coloured = false;
  private readonly decoder = new Utf8Stream();
  /** The current line from its last ESC on. */
  private pending = '';
  /** How much of the result for `pending` has been returned. */
  private given = 0;

  push(bytes: Uint8Array): string {
    return this.add(this.decoder.push(bytes));
  }

  /** The rest, which could have become an escape sequence. */
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
    const answer = this.strip(true).slice(this.given);
    const escape = this.pending.lastIndexOf(ESC);
    this.pending = escape < 0 ? '' : this.pending.slice(escape);
    this.given = this.strip(true).length;
    const shown = this.show(answer);
    return this.pending.length > MAX_PENDING ? shown + this.settle(true) : shown;
  }

  private settle(more: boolean): string {
    const answer = this.strip(more).slice(this.given);
    this.pending = '';
    this.given = 0;
    return this.show(answer);
  }

  /** What is pending, without its sequences; colours are left where they pass. */
  private strip(more: boolean): string {
    const text = this.pending;
    if (!this.colours) return stripAnsi(text, more);
    let kept = '';
    let at = 0;
    for (let escape = text.indexOf(ESC); escape >= 0; escape = text.indexOf(ESC, at)) {
      kept += text.slice(at, escape);
      at = sequenceEnd(text, escape, more);
      const sequence = text.slice(escape, at);
      if (COLOUR.test(sequence)) kept += sequence;
    }
    return kept + text.slice(at);
  }

  private show(text: string): string {
    if (!this.colours) return visible(text);
    return text.replace(COLOUR_OR_UNFIT, (found) => {
      if (found.length === 1) return caret(found);
      this.coloured = !NO_COLOUR.test(found);
      return found;
    });
  }
}

/** The output of a program, or a document: lines and tabs stay, nothing else commands the terminal. */
export function visible(text: string): string {
  return text.replace(UNFIT_FOR_OUTPUT, caret);
}

/** Everything else that a person reads: a name, a title, a command, a path, an error. On one line, nothing hidden. */
export function quote(text: string): string {
  return text.replace(UNFIT, (character) => {
    if (character === '\n') return '\\n';
    if (character === '\t') return '\\t';
    if (character === '\r') return '\\r';
    return escaped(character);
  });
}

const MOST_SHOWN = 300;

/** A sentence that names what was given, which may be very long: its middle is left out then. */
export function shortened(text: string): string {
  if (text.length <= MOST_SHOWN) return text;
  return `${text.slice(0, MOST_SHOWN / 2)} … ${text.slice(-MOST_SHOWN / 2)}`;
}

/** A line of ours, in which tabs separate columns. */
export function quoteLine(text: string): string {
  return text.split('\t').map(quote).join('\t');
}

/** JSON that a terminal can show: the same value, with no such character raw in any of its texts. */
export function quoteJson(value: unknown, indent?: number): string {
  const units = (character: string): string =>
    Array.from({ length: character.length }, (_, at) => unit(character.charCodeAt(at))).join('');
  // JSON's own line breaks are between its texts; within them they are escaped already.
  return JSON.stringify(value, undefined, indent).replace(UNFIT, (character) =>
    character === '\n' ? character : units(character),
  );
}

function caret(character: string): string {
  const code = character.charCodeAt(0);
  return code <= DEL ? `^${String.fromCharCode(code ^ 0x40)}` : escaped(character);
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, '0')}`;
  return code <= 0xffff ? unit(code) : `\\u{${code.toString(16)}}`;
}

function unit(code: number): string {
  return `\\u${code.toString(16).padStart(4, '0')}`;
}
