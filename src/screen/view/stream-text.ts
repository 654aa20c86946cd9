// The output of a terminal's program as continuous text, without control sequences and without line breaks where the
// screen wrapped. Only the last part is kept.

import { stripAnsi } from '../../base/bytes/ansi.ts';
import { Utf8Stream } from '../../base/bytes/utf8.ts';
import type { ProcessEvent } from '../../protocol/event.ts';

/** How much text is kept. */
const MAX_LENGTH = 256 * 1024;

export class StreamText {
  private readonly utf8 = new Utf8Stream();
  private lines = '';
  /** The unfinished last line, unprocessed. */
  private rest = '';

  add(events: readonly ProcessEvent[]): void {
    for (const event of events)
      if (event.kind === 'output') this.rest += this.utf8.push(event.data);
    const end = this.rest.lastIndexOf('\n') + 1;
    this.lines += toPlain(this.rest.slice(0, end));
    // A line without an end is limited too.
    this.rest = this.rest.slice(Math.max(end, this.rest.length - MAX_LENGTH));
    if (this.lines.length > 2 * MAX_LENGTH) this.lines = this.lines.slice(-MAX_LENGTH);
  }

  get text(): string {
    return this.lines + toPlain(this.rest, true);
  }
}

function toPlain(text: string, more = false): string {
  return stripAnsi(text, more).replaceAll('\r\n', '\n');
}
