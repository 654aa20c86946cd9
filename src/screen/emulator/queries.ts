// Detects whether output contains a terminal query. A screen that nobody looks at need not be current, unless the
// program waits for an answer. This check is cheap.

const ESC = 0x1b;
/** Device attributes, status and cursor, version, size, modes and settings, colours. */
const QUERY =
  // oxlint-disable-next-line no-control-regex -- that is what it looks for
  /\x1b(?:\[[?>=]?[\d;]*(?:c|n|\$p|t)|\[>[\d;]*q|\](?:4;\d+|1[0-2]);[^\x07\x1b]*\?|P\$q)/;
/** A sequence may begin at the end of one piece and continue in the next. */
const MAX_SEQUENCE = 64;

export class QueryWatch {
  private tail = '';

  /** True if these bytes, with those before, contain a query. It may be a false alarm, but misses none. */
  asks(bytes: Uint8Array): boolean {
    if (this.tail === '' && !bytes.includes(ESC)) return false;
    const text =
      this.tail + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
    const last = text.lastIndexOf('\x1b');
    this.tail = last >= 0 && text.length - last <= MAX_SEQUENCE ? text.slice(last) : '';
    const isQuery = QUERY.test(text);
    if (isQuery && QUERY.test(this.tail)) this.tail = '';
    return isQuery;
  }
}
