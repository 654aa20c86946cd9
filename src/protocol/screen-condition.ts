// Conditions on a screen. All given fields must hold at the same time.

export interface ScreenCondition {
  /** Anywhere in the text. */
  readonly text?: string;
  /** A JavaScript regular expression without flags. */
  readonly regex?: string;
  /**
   * `screen` (default): the visible rows. `stream`: everything printed after `afterSeq`, without control sequences, so
   * that scrolled and wrapped text is found too.
   */
  readonly where?: 'screen' | 'stream';
  /** Inverts `text` or `regex`: it must not be there. */
  readonly gone?: boolean;
  /** The visible text has not changed for this long. */
  readonly stableMs?: number;
  /** From 0. */
  readonly cursorRow?: number;
  readonly cursorCol?: number;
  /** The hash differs from this one. */
  readonly changedFrom?: string;
}
