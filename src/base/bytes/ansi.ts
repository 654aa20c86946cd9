// Terminal control sequences in text: taking them out, so that what is left is what a person would have read.

const ESC = '\x1b';
const BEL = 0x07;
const LF = 0x0a;
const CAN = 0x18;
const SUB = 0x1a;
const ESC_CODE = 0x1b;
/** OSC, DCS, SOS, PM and APC: each carries a string up to BEL or ST. */
const STRING_OPENERS = ']PX^_';

/**
 * Takes out CSI, OSC and the other escape sequences, in linear time, each line by itself: a string sequence (as a window
 * title) that is not ended in its line loses only its two opening characters, so that no text is hidden. With `more` the
 * text may go on behind its end, and a sequence that is unfinished there is taken out as far as it has come: then the
 * answer for a beginning is always a beginning of the answer for the whole.
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

/** Behind the control sequence whose ESC stands at `escape`. */
export function sequenceEnd(text: string, escape: number, more: boolean): number {
  const second = text.charAt(escape + 1);
  if (second === '[') return parametersEnd(text, escape + 2, 0x40);
  if (second !== '' && STRING_OPENERS.includes(second)) return stringEnd(text, escape + 2, more);
  return parametersEnd(text, escape + 1, 0x30);
}

/** Parameters (only where a final byte is at least 0x40), intermediates, one final byte; ends early at anything else. */
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
    // Any other sequence ends the string as well, and is then taken by itself.
    if (code === ESC_CODE) return text.charAt(at + 1) === '\\' ? at + 2 : at;
    if (code === LF) return from;
  }
  return more ? text.length : from;
}
