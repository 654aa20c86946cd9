// Where the completion feed is kept: one small journal in a folder of its own, written anew when it has grown large.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { randomId } from '../base/ids.ts';
import { decodeRecords } from '../protocol/record.ts';
import { Journal, type JournalOptions } from '../journal/journal.ts';
import { readPage } from '../journal/reader.ts';
import { listJournals, openJournal } from '../journal/recovery.ts';
import { segmentName } from '../journal/segment.ts';
import { EndedJournal } from '../journal/ended-journal.ts';
import { Completions, type FeedNote } from './completions.ts';

/** Far below the size at which a journal drops from its middle. */
const REWRITE_BYTES = 8 * 1024 * 1024;

export type FeedOptions = Omit<JournalOptions, 'place' | 'after'> & { readonly place: Omit<JournalOptions['place'], 'id'> };

export class FeedFile {
  readonly completions = new Completions();
  private readonly options: FeedOptions;
  private journal: Journal | undefined;

  constructor(options: FeedOptions) {
    this.options = options;
  }

  async open(): Promise<void> {
    const { folder, disk } = this.options.place;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const old = listJournals(folder);
    for (const [id, numbers] of old) {
      const found = openJournal({ disk, folder, id, numbers });
      const { segments } = found;
      const seq = segments.at(-1)?.endSeq ?? 0;
      await this.replay(new EndedJournal(segments, { seq, offset: 0, lostBytes: 0 }));
    }
    this.rewrite();
    // Only after the new file holds everything: a crash in between leaves both, and replaying both is harmless.
    for (const [id, numbers] of old) this.removeAll(id, numbers);
  }

  /** To be called now and then: keeps the file small. */
  tidy(): void {
    if ((this.journal?.bytesOnDisk ?? 0) < REWRITE_BYTES) return;
    const old = this.journal;
    this.rewrite();
    old?.remove();
  }

  close(): void {
    this.journal?.flush();
    this.journal?.release();
  }

  private rewrite(): void {
    const { place, limits, clock, pool } = this.options;
    const journal = new Journal({ place: { ...place, id: randomId() }, limits, clock, pool });
    journal.open();
    this.completions.recordTo(journal);
    journal.flush();
    this.journal = journal;
  }

  private async replay(journal: EndedJournal): Promise<void> {
    for (let after = 0; ; ) {
      const page = await readPage(journal, { after, maxBytes: 1024 * 1024 });
      if (page.nextAfter === after) return;
      for (const event of decodeRecords(page.records)) {
        if (event.kind === 'note') this.completions.replay(event.body as unknown as FeedNote);
      }
      after = page.nextAfter;
    }
  }

  private removeAll(id: string, numbers: readonly number[]): void {
    const { disk, folder } = this.options.place;
    for (const number of numbers) disk.remove(join(folder, segmentName(id, number)));
  }
}
