// Where the tables of a font file lie. Collections are opened at their first font.

export interface FontTable {
  readonly at: number;
  readonly bytes: number;
}

/** Bytes of a file; a RangeError where it has none. */
export type ReadPart = (at: number, bytes: number) => Buffer;

const HEADER_BYTES = 16;
const ENTRY_BYTES = 16;

export function readTables(read: ReadPart): Map<string, FontTable> {
  const header = read(0, HEADER_BYTES);
  const isCollection = header.toString('latin1', 0, 4) === 'ttcf';
  const start = isCollection ? header.readUInt32BE(12) : 0;
  const count = read(start, HEADER_BYTES).readUInt16BE(4);
  const entries = read(start + 12, count * ENTRY_BYTES);
  return new Map(
    Array.from({ length: count }, (_, n) => {
      const entry = n * ENTRY_BYTES;
      const table = {
        at: entries.readUInt32BE(entry + 8),
        bytes: entries.readUInt32BE(entry + 12),
      };
      return [entries.toString('latin1', entry, entry + 4), table];
    }),
  );
}

export function inMemory(file: Buffer): ReadPart {
  return (at, bytes) => {
    if (at + bytes > file.length)
      throw new RangeError('The font refers to bytes it does not have.');
    return file.subarray(at, at + bytes);
  };
}
