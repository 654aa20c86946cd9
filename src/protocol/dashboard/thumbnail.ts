// A terminal as a small picture: what the wall of the dashboard is sent.

/** Column, columns, text, colour, background or -1 for that of the theme, 1 for bold. */
export type ThumbnailRun = readonly [number, number, string, number, number, 0 | 1];
export type ThumbnailLine = readonly [row: number, runs: readonly ThumbnailRun[]];

/** The lines of a terminal that have changed since the message before. */
export interface ThumbnailMessage {
  readonly seq: number;
  readonly cols: number;
  readonly rows: number;
  readonly lines: readonly ThumbnailLine[];
  /** Row and column, when it is shown. */
  readonly cursor?: readonly [number, number];
  /** What the program called it. */
  readonly title: string;
}
