// Records that are about to be written, and the stretch of events that they are.

export interface Stretch {
  readonly firstSeq: number;
  readonly firstOffset: number;
  readonly endSeq: number;
  readonly endOffset: number;
  /** Nothing comes behind it: the file has to end with it. */
  readonly final?: boolean;
}

/** Records that are written together with others, and where each part begins is to be found again. */
export interface Part extends Stretch {
  readonly bytes: number;
  /** These bytes, in as many pieces as they stand in. */
  pieces(): readonly Buffer[];
}

export function bytesOf(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => sum + part.bytes, 0);
}

export function piecesOf(parts: readonly [Part, ...Part[]]): readonly Buffer[] {
  // Mostly it is one.
  return parts.length === 1 ? parts[0].pieces() : parts.flatMap((part) => part.pieces());
}
