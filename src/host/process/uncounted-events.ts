// The uncounted events of a process: those that are neither output nor an exit. They convert a number among all events
// to a number among the counted ones, and back, even if part of the journal was dropped.

import type { ProcessEvent } from '../../protocol/event.ts';
import type { Page } from '../../protocol/host-api.ts';
import { decodeRecords } from '../../protocol/record.ts';
import type { EndedJournal } from '../../journal/read/ended-journal.ts';
import type { Journal } from '../../journal/write/journal.ts';
import { readPage } from '../../journal/read/reader.ts';

/** The counted kinds. A gap counts, because its events are unknown. */
const COUNTED: ReadonlySet<ProcessEvent['kind']> = new Set(['output', 'exited', 'closed', 'gap']);
const RECALL_BYTES = 1024 * 1024;

export class UncountedEvents {
  /** Ascending. The first event, `started`, is uncounted. */
  private readonly seqs: number[] = [1];
  private forgotten = false;
  private recalling: Promise<void> | undefined;

  add(seq: number): void {
    this.seqs.push(seq);
  }

  /** For a process of an earlier keeper: its journal is read at the first use. */
  forget(): void {
    this.forgotten = true;
  }

  /** Wait for it before counting; undefined if there is nothing to wait for. */
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

  /** Number of uncounted events up to and including this event. */
  upTo(seq: number): number {
    let [low, high] = [0, this.seqs.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.seqs[middle] ?? Infinity) <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Number of the n-th counted event; of the last uncounted one before it if it has not happened yet. */
  seqOf(count: number): number {
    // Binary search: each uncounted event before the position shifts it by one.
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
