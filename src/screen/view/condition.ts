// Options and result of a wait for a screen.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import type { ScreenText } from './snapshot.ts';

export interface ScreenWaitOptions {
  readonly timeoutMs?: number;
  readonly signal?: CancelSignal;
  /** Only screens after this event count. */
  readonly afterSeq?: number;
}

export interface ScreenWait {
  readonly matched: boolean;
  readonly timedOut: boolean;
  /** What `text` or `regex` found. */
  readonly matchedText?: string;
  /** The screen that decided, or the last one. */
  readonly snapshot: ScreenText;
  /** On timeout: the line that came nearest to `text`, and the part of it that was found. */
  readonly nearest?: { readonly row: number; readonly line: string; readonly found: string };
}
