// What can be waited for on a screen. Conditions given together must hold together.

export interface ScreenCondition {
  /** Anywhere in the text. */
  readonly text?: string;
  /** A JavaScript regular expression without flags. */
  readonly regex?: string;
  /**
   * `screen` (unless told): the visible lines, rows as they are. `stream`: everything printed behind `afterSeq`, control
   * sequences taken out, so that scrolled and wrapped text is found too.
   */
  readonly where?: 'screen' | 'stream';
  /** Turns `text` or `regex` round: it must not be there. */
  readonly gone?: boolean;
  /** The visible text has not changed for so long. */
  readonly stableMs?: number;
  /** From 0. */
  readonly cursorRow?: number;
  readonly cursorCol?: number;
  /** The hash is another than this one. */
  readonly changedFrom?: string;
}
