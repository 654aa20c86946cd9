// A wait for what a screen shows: what is asked for, and how it ended.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import type { ScreenText } from './snapshot.ts';

export interface ScreenWaitOptions {
  readonly timeoutMs?: number;
  readonly signal?: CancelSignal;
  /** Only what the screen shows behind this event counts. */
  readonly afterSeq?: number;
}

export interface ScreenWait {
  readonly matched: boolean;
  readonly timedOut: boolean;
  /** What `text` or `regex` found. */
  readonly matchedText?: string;
  /** The screen at which it was decided, or the last one seen. */
  readonly snapshot: ScreenText;
  /** On a time-out: the line that came nearest to `text`, and how much of it was there. */
  readonly nearest?: { readonly row: number; readonly line: string; readonly found: string };
}
