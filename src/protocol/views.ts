// Results of the views of a journal: head-and-tail text and search.

export interface HeadTailText {
  readonly text: string;
  /** Absent if the text is the whole output. */
  readonly truncated?: Truncation;
}

/** original = retained + omitted + cut out of lines. */
export interface Truncation {
  readonly originalBytes: number;
  /** Bytes of the output that the text represents. */
  readonly retainedBytes: number;
  /** Omitted between head and tail: the number in the marker. */
  readonly omittedBytes: number;
  /** Long lines that were cut in the middle, and the bytes cut out of them. */
  readonly cutLines: number;
  readonly cutLineBytes: number;
  /** The part of `omittedBytes` that is no longer stored. */
  readonly lostBytes: number;
  readonly strategy: 'head_tail';
}

export interface SearchHit {
  /** Offset of the line in the output. */
  readonly offset: number;
  /** Its end, before the line break. */
  readonly endOffset: number;
  /** From 1. Only if requested, in a search from the first byte, and if no byte before it is missing. */
  readonly lineNumber?: number;
  /** Without control sequences unless the query is `raw`; at most 2048 bytes, the match in the middle. */
  readonly line: string;
  readonly match: string;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

export interface SearchResult {
  readonly hits: readonly SearchHit[];
  readonly searchedFrom: number;
  /** Everything before it has been searched, the incomplete last line included. */
  readonly searchedTo: number;
  /** Start of the incomplete last line, or `searchedTo` if there is none. */
  readonly resumeFrom: number;
  readonly resume: SearchPosition;
  /** Bytes in between that are no longer stored. */
  readonly missedBytes: number;
  /** The limit was reached before the end. */
  readonly truncated: boolean;
}

/** Where the next search continues: no line is missed or reported twice, no byte is read again. */
export interface SearchPosition {
  readonly offset: number;
  /** Before `offset` if that is inside a very long line. */
  readonly lineStart: number;
  /** The previous search has reported this line. */
  readonly reported: boolean;
}
