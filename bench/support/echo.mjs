// What an echo through a keeper takes, of a process that does nothing else.

import { decodeRecords } from '../../dist/index.js';
import { OWNER } from './keeper.mjs';
import { nowMs } from './statistics.mjs';

/** A `cat`: a line is written to it, and read back. */
export class Echo {
  #link;
  #id;
  #after = 0;
  #lines = 0;

  constructor(link) {
    this.#link = link;
  }

  async open() {
    const { process } = await this.#link.start(OWNER, { argv: ['cat'], stdin: 'pipe' });
    this.#id = process.id;
  }

  /** Milliseconds from the call that writes the line to the answer that has it. */
  async once() {
    this.#lines += 1;
    const line = `line ${this.#lines}\n`;
    const began = nowMs();
    const written = this.#link.write(OWNER, { id: this.#id, data: Buffer.from(line) });
    for (let text = ''; !text.includes(line);) {
      const page = await this.#link.read(OWNER, {
        id: this.#id,
        after: this.#after,
        waitMs: 60_000,
      });
      this.#after = page.nextAfter;
      for (const event of decodeRecords(page.records))
        if (event.kind === 'output') text += event.data;
    }
    const ms = nowMs() - began;
    await written;
    return ms;
  }
}
