// A byte source: the retained output of a process as a searcher reads it, wherever the bytes are kept.

export interface ByteSource {
  /** Offsets count every byte the process printed, so both stay true when something in between is dropped. */
  readonly start: number;
  /** May grow while it is being read. */
  readonly end: number;
  /**
   * The first bytes that exist at or behind `offset`, at least one and at most `maxBytes`; undefined at the end. An
   * answer that begins later than asked jumps over bytes that are gone. The bytes are not overwritten afterwards.
   */
  read(
    offset: number,
    maxBytes: number,
  ): Promise<{ readonly offset: number; readonly bytes: Buffer } | undefined>;
}
