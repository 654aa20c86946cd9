// What the views of a journal answer.

export interface HeadTailText {
  readonly text: string;
  /** Absent when the text is the whole output. */
  readonly truncated?: Truncation;
}

/** Every byte is shown, omitted, or cut out of a line: original = retained + omitted + cut. */
export interface Truncation {
  readonly originalBytes: number;
  /** Bytes of the output that the text represents. */
  readonly retainedBytes: number;
  /** Left out between head and tail: the number in the marker. */
  readonly omittedBytes: number;
  /** Long lines that were cut in their middle, and what was cut out of them: the sum of their inline marks. */
  readonly cutLines: number;
  readonly cutLineBytes: number;
  /** Of `omittedBytes`, no longer kept anywhere. */
  readonly lostBytes: number;
  readonly strategy: 'head_tail';
}

export interface SearchHit {
  /** Where the line begins in the output. */
  readonly offset: number;
  /** Its end, before the line break. */
  readonly endOffset: number;
  /** From 1. Only if asked for, in a search from the first byte, and where nothing before it is missing. */
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
  /** Everything before has been searched, the incomplete last line included. */
  readonly searchedTo: number;
  /** Start of the incomplete last line, or `searchedTo` when there is none. */
  readonly resumeFrom: number;
  readonly resume: SearchPosition;
  /** Bytes in between that are no longer kept. */
  readonly missedBytes: number;
  /** The limit was reached before the end. */
  readonly truncated: boolean;
}

/** Where a search that follows another goes on: no line is missed, none is reported twice, nothing is read again. */
export interface SearchPosition {
  readonly offset: number;
  /** Before `offset` when that lies inside a very long line. */
  readonly lineStart: number;
  /** The line is a hit of the search before. */
  readonly reported: boolean;
}
