// The uncounted events of a process: those that are neither output nor an ending. With them a place among all
// events can be told as a place among the others alone, and back, although part of the journal may be gone.

import type { ProcessEvent } from '../../protocol/event.ts';
import type { Page } from '../../protocol/host-api.ts';
import { decodeRecords } from '../../protocol/record.ts';
import type { EndedJournal } from '../../journal/read/ended-journal.ts';
import type { Journal } from '../../journal/write/journal.ts';
import { readPage } from '../../journal/read/reader.ts';

/** What is counted. A gap stands for events of which nobody knows what they were, so they count. */
const COUNTED: ReadonlySet<ProcessEvent['kind']> = new Set(['output', 'exited', 'closed', 'gap']);
const RECALL_BYTES = 1024 * 1024;

export class UncountedEvents {
  /** Ascending. The first event, `started`, is one. */
  private readonly seqs: number[] = [1];
  private forgotten = false;
  private recalling: Promise<void> | undefined;

  add(seq: number): void {
    this.seqs.push(seq);
  }

  /** Of a process that an earlier keeper held: its journal knows them, and is asked when somebody counts. */
  forget(): void {
    this.forgotten = true;
  }

  /** To be waited for before counting; undefined when there is nothing to wait for. */
  recall(journal: Journal | EndedJournal): Promise<void> | undefined {
    if (!this.forgotten) return undefined;
    this.recalling ??= this.recallFrom(journal).finally(() => (this.recalling = undefined));
    return this.recalling;
  }

  private async recallFrom(journal: Journal | EndedJournal): Promise<void> {
    const found: number[] = [];
    for (let after = 1; ;) {
      const page = await readPage(journal, { after, maxBytes: RECALL_BYTES });
      for (const { kind, seq } of decodeRecords(page.records))
        if (!COUNTED.has(kind)) found.push(seq);
      if (page.nextAfter === after) break;
      after = page.nextAfter;
    }
    this.seqs.splice(1, Infinity, ...found);
    this.forgotten = false;
  }

  /** How many there are up to and including this event. */
  upTo(seq: number): number {
    let [low, high] = [0, this.seqs.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.seqs[middle] ?? Infinity) <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The number of the event that is the n-th of the counted events; of the last uncounted one before it when it has not come. */
  seqOf(count: number): number {
    // Each uncounted event up to the place sought moves it on by one: looked for among the gaps between them.
    let [low, high] = [0, this.seqs.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.seqs[middle] ?? Infinity) - middle <= count) low = middle + 1;
      else high = middle;
    }
    return count + low;
  }

  ofPage(after: number, nextAfter: number, visibleSeq: number): NonNullable<Page['uncounted']> {
    const before = this.upTo(after);
    const seqs = this.seqs.slice(before, this.upTo(nextAfter));
    return { before, after, seqs, count: visibleSeq - this.upTo(visibleSeq) };
  }
}
