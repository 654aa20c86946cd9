// What the views of a journal answer.

export interface HeadTailText {
  readonly text: string;
  readonly truncated?: {
    readonly originalBytes: number;
    readonly retainedBytes: number;
    readonly omittedBytes: number;
    /** Lines that were too long and lost their middle. */
    readonly cutLines: number;
    readonly strategy: 'head_tail';
  };
}

export interface SearchHit {
  /** Where the line begins and ends in the output. */
  readonly offset: number;
  readonly endOffset: number;
  readonly line: string;
  readonly match: string;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

export interface SearchResult {
  readonly hits: readonly SearchHit[];
  readonly searchedFrom: number;
  readonly searchedTo: number;
  /** Where the still unfinished last line begins: search on from here. */
  readonly resumeFrom: number;
  readonly missedBytes: number;
  /** True when there may be more hits than were asked for. */
  readonly truncated: boolean;
}
