// A screen as text, as callers get it: agent-tty's fields.

/** What every format of a snapshot says about the screen. */
export interface ScreenFacts {
  readonly sessionId: string;
  readonly capturedAtSeq: number;
  readonly cols: number;
  readonly rows: number;
  readonly cursorRow: number;
  readonly cursorCol: number;
  readonly screenHash: string;
}

export interface TextSnapshot extends ScreenFacts {
  readonly format: 'text';
  readonly text: string;
}
