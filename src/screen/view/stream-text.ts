// What a terminal's program has printed, as running text: control sequences taken out, lines not broken where the screen
// was full. Only the last part of it is kept.

import { stripAnsi } from '../../base/bytes/ansi.ts';
import { Utf8Stream } from '../../base/bytes/utf8.ts';
import type { ProcessEvent } from '../../protocol/event.ts';

/** Text behind which older text is let go. */
const KEPT = 256 * 1024;

export class StreamText {
  private readonly utf8 = new Utf8Stream();
  private lines = '';
  /** The line that is not ended yet, as it came. */
  private rest = '';

  add(events: readonly ProcessEvent[]): void {
    for (const event of events)
      if (event.kind === 'output') this.rest += this.utf8.push(event.data);
    const end = this.rest.lastIndexOf('\n') + 1;
    this.lines += plain(this.rest.slice(0, end));
    // A line without end cannot grow for ever either.
    this.rest = this.rest.slice(Math.max(end, this.rest.length - KEPT));
    if (this.lines.length > 2 * KEPT) this.lines = this.lines.slice(-KEPT);
  }

  get text(): string {
    return this.lines + plain(this.rest, true);
  }
}

function plain(text: string, more = false): string {
  return stripAnsi(text, more).replaceAll('\r\n', '\n');
}
