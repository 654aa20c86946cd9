// Whether a program asks its terminal something. A screen that nobody looks at need not be kept in step, except that a
// program may wait for an answer; this tells, cheaply, when it is worth waking up.

const ESC = 0x1b;
/** Device attributes, status and cursor, version, size, modes and settings, colours. */
const QUERY =
  // oxlint-disable-next-line no-control-regex -- that is what it looks for
  /\x1b(?:\[[?>=]?[\d;]*(?:c|n|\$p|t)|\[>[\d;]*q|\](?:4;\d+|1[0-2]);[^\x07\x1b]*\?|P\$q)/;
/** A sequence may have begun at the end of one piece and go on in the next. */
const LONGEST_BEGINNING = 64;

export class QueryWatch {
  private tail = '';

  /** True when these bytes, with what came before them, ask something. May be true for nothing, never the other way. */
  asks(bytes: Uint8Array): boolean {
    if (this.tail === '' && !bytes.includes(ESC)) return false;
    const text =
      this.tail + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
    const last = text.lastIndexOf('\x1b');
    this.tail = last >= 0 && text.length - last <= LONGEST_BEGINNING ? text.slice(last) : '';
    const asked = QUERY.test(text);
    if (asked && QUERY.test(this.tail)) this.tail = '';
    return asked;
  }
}
