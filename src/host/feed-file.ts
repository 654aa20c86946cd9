// Where the completion feed is kept: one small journal in a folder of its own, written anew when it has grown large.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { decodeRecords } from '../protocol/record.ts';
import { Journal, type JournalOptions } from '../journal/journal.ts';
import { readPage } from '../journal/reader.ts';
import { listJournals, openJournal } from '../journal/recovery.ts';
import { segmentName } from '../journal/segment.ts';
import { EndedJournal } from '../journal/ended-journal.ts';
import { Completions, type FeedNote } from './completions.ts';

/** Far below the size at which a journal drops from its middle. */
const REWRITE_BYTES = 8 * 1024 * 1024;

export type FeedOptions = Omit<JournalOptions, 'place' | 'after'> & {
  readonly place: Omit<JournalOptions['place'], 'id'>;
};

export class FeedFile {
  readonly completions = new Completions();
  private readonly options: FeedOptions;
  private journal: Journal | undefined;
  /** Each rewriting makes a journal with the next number, so that several left by a crash are replayed in their order. */
  private generation = 0;

  constructor(options: FeedOptions) {
    this.options = options;
  }

  async open(): Promise<void> {
    const { folder, disk } = this.options.place;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const old = Array.from(listJournals(folder)).sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [id, numbers] of old) {
      const { segments } = openJournal({ disk, folder, id, numbers });
      const seq = segments.at(-1)?.endSeq ?? 0;
      await this.replay(new EndedJournal(segments, { seq, offset: 0, lostBytes: 0 }));
      this.generation = Math.max(this.generation, generationOf(id));
    }
    // Only when the new file holds everything are the old ones needed no more.
    if (!this.rewrite()) return;
    for (const [id, numbers] of old)
      for (const number of numbers) disk.remove(join(folder, segmentName(id, number)));
  }

  /** To be called now and then: keeps the file small. */
  tidy(): void {
    if ((this.journal?.bytesOnDisk ?? 0) < REWRITE_BYTES) return;
    const old = this.journal;
    if (this.rewrite()) old?.remove();
  }

  close(): void {
    this.journal?.flush();
    this.journal?.release();
  }

  /** False when the disk does not take it now: it stays in memory and goes there later. */
  private rewrite(): boolean {
    const { place, limits, clock, pool } = this.options;
    this.generation += 1;
    const id = `feed-${String(this.generation).padStart(12, '0')}`;
    const journal = new Journal({ place: { ...place, id }, limits, clock, pool });
    this.completions.recordTo(journal);
    journal.flush();
    this.journal = journal;
    return journal.degraded === undefined && journal.visibleSeq === journal.seq;
  }

  private async replay(journal: EndedJournal): Promise<void> {
    for (let after = 0; ;) {
      const page = await readPage(journal, { after, maxBytes: 1024 * 1024 });
      if (page.nextAfter === after) return;
      for (const event of decodeRecords(page.records)) {
        if (event.kind === 'note') this.completions.replay(event.body as unknown as FeedNote);
      }
      after = page.nextAfter;
    }
  }
}

function generationOf(id: string): number {
  return Number(id.replace(/^feed-/, '')) || 0;
}
