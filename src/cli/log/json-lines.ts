// A followed log as JSON, one object per line.

import { Utf8Stream } from '../../base/bytes/utf8.ts';
import type { Stream } from '../../protocol/event.ts';
import type { Outcome } from '../../protocol/process.ts';
import type { LogTarget } from './follow.ts';
import type { Output } from '../output/output.ts';

export class JsonLines implements LogTarget {
  private readonly out: Output;
  /** Per stream: a character may be cut between two pieces. */
  private readonly decoders = new Map<Stream, Utf8Stream>();

  constructor(out: Output) {
    this.out = out;
  }

  async output(stream: Stream, bytes: Buffer): Promise<void> {
    const decoder = this.decoders.get(stream) ?? new Utf8Stream();
    this.decoders.set(stream, decoder);
    await this.print(stream, decoder.push(bytes));
  }

  note(text: string): Promise<void> {
    return this.out.object({ event: 'missing', text });
  }

  async end(outcome: Outcome | undefined): Promise<void> {
    for (const [stream, decoder] of this.decoders) await this.print(stream, decoder.end());
    await this.out.object({ event: 'end', ...(outcome && { outcome }) });
  }

  private async print(stream: Stream, text: string): Promise<void> {
    if (text !== '') await this.out.object({ event: 'output', stream, text });
  }
}
