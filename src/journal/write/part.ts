// Records to be written, and the range of events that they hold.

export interface EventRange {
  readonly firstSeq: number;
  readonly firstOffset: number;
  readonly endSeq: number;
  readonly endOffset: number;
  /** The file must end with it. */
  readonly final?: boolean;
}

/** Records with an index point at their beginning. */
export interface Part extends EventRange {
  readonly bytes: number;
  /** The bytes, in one or more buffers. */
  pieces(): readonly Buffer[];
}

export function bytesOf(parts: readonly Part[]): number {
  return parts.reduce((total, part) => total + part.bytes, 0);
}

export function piecesOf(parts: readonly [Part, ...Part[]]): readonly Buffer[] {
  // Usually there is one.
  return parts.length === 1 ? parts[0].pieces() : parts.flatMap((part) => part.pieces());
}
