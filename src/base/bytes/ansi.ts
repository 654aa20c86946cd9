// Removes terminal control sequences from text.

const ESC = '\x1b';
const BEL = 0x07;
const LF = 0x0a;
const CAN = 0x18;
const SUB = 0x1a;
const ESC_CODE = 0x1b;
/** OSC, DCS, SOS, PM and APC carry a string that ends with BEL or ST. */
const STRING_OPENERS = ']PX^_';

/**
 * Removes CSI, OSC and the other escape sequences, line by line, in linear time. If a string sequence (such as a window
 * title) does not end in its line, only its two opening characters are removed, so that no text is hidden. With `more`
 * the text may continue, and an unfinished sequence at its end is removed: the result for a prefix of a text is then a
 * prefix of the result for the whole text.
 */
export function stripAnsi(text: string, more = false): string {
  let escape = text.indexOf(ESC);
  if (escape < 0) return text;
  let plain = '';
  let at = 0;
  while (escape >= 0) {
    plain += text.slice(at, escape);
    at = sequenceEnd(text, escape, more);
    escape = text.indexOf(ESC, at);
  }
  return plain + text.slice(at);
}

/** Index after the control sequence that begins at `escape`. */
export function sequenceEnd(text: string, escape: number, more: boolean): number {
  const second = text.charAt(escape + 1);
  if (second === '[') return parametersEnd(text, escape + 2, 0x40);
  if (second !== '' && STRING_OPENERS.includes(second)) return stringEnd(text, escape + 2, more);
  return parametersEnd(text, escape + 1, 0x30);
}

/** Parameters (only if the final byte is 0x40 or more), intermediates, one final byte; stops at any other byte. */
function parametersEnd(text: string, from: number, firstFinal: number): number {
  let at = from;
  let code = text.charCodeAt(at);
  while (code >= 0x30 && code < firstFinal) code = text.charCodeAt((at += 1));
  while (code >= 0x20 && code <= 0x2f) code = text.charCodeAt((at += 1));
  return code >= firstFinal && code <= 0x7e ? at + 1 : at;
}

function stringEnd(text: string, from: number, more: boolean): number {
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === BEL || code === CAN || code === SUB) return at + 1;
    // Another sequence ends the string too; the caller then removes that one.
    if (code === ESC_CODE) return text.charAt(at + 1) === '\\' ? at + 2 : at;
    if (code === LF) return from;
  }
  return more ? text.length : from;
}
