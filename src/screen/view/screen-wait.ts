// Waits until a screen matches a condition: checks now and after each change, until it holds, the timeout passes, or
// the caller cancels.

import type { Clock } from '../../base/clock.ts';
import { abortedError } from '../../protocol/cancellation.ts';
import type { ProcessEvent } from '../../protocol/event.ts';
import type { ScreenCondition } from '../../protocol/screen-condition.ts';
import type { ScreenWait, ScreenWaitOptions } from './condition.ts';
import { checkPattern } from './patterns.ts';
import type { Patterns } from './patterns.ts';
import type { Screen } from './screen.ts';
import type { ScreenText } from './snapshot.ts';
import { StreamText } from './stream-text.ts';

/** The text of a screen as it is now. */
export type ReadText = (screen: Screen) => Promise<ScreenText>;

interface WaitDeps {
  readonly clock: Clock;
  readonly patterns: Patterns;
  readonly readText: ReadText;
}

export async function waitOnScreen(
  screen: Screen,
  condition: ScreenCondition,
  options: ScreenWaitOptions,
  deps: WaitDeps,
): Promise<ScreenWait> {
  if (condition.regex !== undefined) checkPattern(condition.regex);
  if (options.signal?.aborted === true) throw abortedError();
  const watch = new Watch(screen, condition, options, deps);
  try {
    return await watch.run();
  } finally {
    watch.end();
  }
}

interface Verdict {
  readonly met: boolean;
  readonly found?: string | undefined;
  /** How long the screen must stay unchanged from now on. */
  readonly stillInMs?: number;
}

class Watch {
  private readonly screen: Screen;
  private readonly condition: ScreenCondition;
  private readonly options: ScreenWaitOptions;
  private readonly deps: WaitDeps;
  private readonly undo: (() => void)[] = [];
  private readonly stream: StreamText | undefined;
  private readonly from: number;
  /** Events that were fed but are not in the stream text yet, and the last one that is. */
  private fed: ProcessEvent[] = [];
  private streamed: number;
  private changed = false;
  private overdue = false;
  private wake: () => void = () => undefined;
  private stillSinceUs: number | undefined;
  private stillHash = '';

  constructor(
    screen: Screen,
    condition: ScreenCondition,
    options: ScreenWaitOptions,
    deps: WaitDeps,
  ) {
    this.screen = screen;
    this.condition = condition;
    this.options = options;
    this.deps = deps;
    this.from = options.afterSeq ?? 0;
    this.streamed = this.from;
    this.stream = condition.where === 'stream' ? new StreamText() : undefined;
    const { timeoutMs, signal } = options;
    this.undo.push(screen.onChange((events) => this.onChange(events)));
    if (timeoutMs !== undefined && timeoutMs > 0) {
      this.undo.push(deps.clock.after(timeoutMs, () => this.wakeUp(() => (this.overdue = true))));
    }
    if (signal !== undefined) {
      const wakeUp = (): void => this.wakeUp(() => undefined);
      signal.addEventListener('abort', wakeUp);
      this.undo.push(() => signal.removeEventListener('abort', wakeUp));
    }
  }

  async run(): Promise<ScreenWait> {
    for (;;) {
      this.changed = false;
      const last = this.overdue || this.options.timeoutMs === 0;
      const snapshot = await this.deps.readText(this.screen);
      if (this.stream !== undefined) await this.followStream(this.stream, snapshot.seq);
      const verdict = await this.check(snapshot);
      if (verdict.met) {
        const { found } = verdict;
        return {
          matched: true,
          timedOut: false,
          ...(found !== undefined && { matchedText: found }),
          snapshot,
        };
      }
      if (last) return this.timedOut(snapshot);
      await this.waitForChange(verdict.stillInMs);
      if (this.options.signal?.aborted === true) throw abortedError();
    }
  }

  end(): void {
    for (const undo of this.undo) undo();
  }

  /** Brings the stream text up to the screen's event: from fed events or, if some are missing, from the journal. */
  private async followStream(stream: StreamText, upTo: number): Promise<void> {
    const fed = this.fed.filter(({ seq }) => seq > this.streamed && seq <= upTo);
    this.fed = this.fed.filter(({ seq }) => seq > upTo);
    if (fed.length === upTo - this.streamed) stream.add(fed);
    else for await (const page of this.screen.read(this.streamed, upTo)) stream.add(page);
    this.streamed = Math.max(this.streamed, upTo);
  }

  private onChange(events: readonly ProcessEvent[]): void {
    if (this.stream !== undefined) this.fed.push(...events);
    this.wakeUp(() => (this.changed = true));
  }

  private wakeUp(note: () => void): void {
    note();
    this.wake();
  }

  private async waitForChange(stillInMs: number | undefined): Promise<void> {
    if (this.changed || this.overdue || this.options.signal?.aborted === true) return;
    let cancel: (() => void) | undefined;
    await new Promise<void>((resolve) => {
      this.wake = resolve;
      if (stillInMs !== undefined) cancel = this.deps.clock.after(stillInMs, resolve);
    });
    cancel?.();
  }

  private async check(snapshot: ScreenText): Promise<Verdict> {
    const { stableMs, cursorRow, cursorCol, changedFrom } = this.condition;
    if (snapshot.seq <= this.from && this.options.afterSeq !== undefined) return { met: false };
    const stillInMs = stableMs === undefined ? 0 : this.stillIn(snapshot, stableMs);
    const placed =
      (cursorRow === undefined || snapshot.cursor.row === cursorRow) &&
      (cursorCol === undefined || snapshot.cursor.col === cursorCol);
    const other = changedFrom === undefined || snapshot.hash !== changedFrom;
    const { met, found } = await this.checkText(snapshot);
    return {
      met: met && placed && other && stillInMs <= 0,
      found,
      ...(stillInMs > 0 && { stillInMs }),
    };
  }

  private async checkText(snapshot: ScreenText): Promise<Verdict> {
    const { text, regex, gone } = this.condition;
    if (text === undefined && regex === undefined) return { met: true };
    const shown = this.stream?.text ?? snapshot.text;
    const found =
      regex === undefined
        ? shown.includes(text ?? '')
          ? text
          : undefined
        : await this.deps.patterns.find(regex, shown, this.screen.owner);
    return gone === true ? { met: found === undefined } : { met: found !== undefined, found };
  }

  private stillIn(snapshot: ScreenText, stableMs: number): number {
    const nowUs = this.deps.clock.nowUs();
    if (this.stillSinceUs === undefined || snapshot.hash !== this.stillHash) {
      this.stillSinceUs = nowUs;
      this.stillHash = snapshot.hash;
    }
    return stableMs - (nowUs - this.stillSinceUs) / 1000;
  }

  private timedOut(snapshot: ScreenText): ScreenWait {
    const { text, gone } = this.condition;
    const nearest =
      text === undefined || gone === true
        ? undefined
        : findNearest(snapshot.text.split('\n'), text);
    return { matched: false, timedOut: true, snapshot, ...(nearest !== undefined && { nearest }) };
  }
}

/** The line that contains the longest beginning of `text`. */
function findNearest(lines: readonly string[], text: string): ScreenWait['nearest'] {
  let nearest: ScreenWait['nearest'];
  lines.forEach((line, row) => {
    let length = nearest?.found.length ?? 0;
    while (length < text.length && line.includes(text.slice(0, length + 1))) length += 1;
    if (length > (nearest?.found.length ?? 0))
      nearest = { row, line, found: text.slice(0, length) };
  });
  return nearest;
}
