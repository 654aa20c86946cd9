// A byte source: the stored output of a process, as a search reads it.

export interface ByteSource {
  /** Offsets count every byte that the process printed, also bytes dropped since. */
  readonly start: number;
  /** May grow during the search. */
  readonly end: number;
  /**
   * The first stored bytes at or after `offset`, at least one and at most `maxBytes`; undefined at the end. An answer that
   * begins later than requested skips missing bytes. The buffer is not reused.
   */
  read(
    offset: number,
    maxBytes: number,
  ): Promise<{ readonly offset: number; readonly bytes: Buffer } | undefined>;
}
