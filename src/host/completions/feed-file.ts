// Stores the completion feed: one small journal in its own folder, rewritten when it has become large.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Turns } from '../../base/turns.ts';
import { decodeRecords } from '../../protocol/record.ts';
import { Journal, type JournalOptions } from '../../journal/write/journal.ts';
import { readPage } from '../../journal/read/reader.ts';
import { listJournals, openInTurns } from '../../journal/read/recovery.ts';
import { segmentName } from '../../journal/read/segment.ts';
import { tryTo } from '../../journal/write/segment-file.ts';
import { EndedJournal } from '../../journal/read/ended-journal.ts';
import { Completions, type FeedNote } from './completions.ts';

/** Far below the size at which a journal drops its middle. */
const REWRITE_BYTES = 8 * 1024 * 1024;

/** The file still has output of a deleted process for this long, so that a thousand deletions rewrite it once. */
const ERASE_MS = 10_000;

/** After a refused rewrite it is retried when the file is larger by this much. */
const REWRITE_AGAIN_BYTES = 1024 * 1024;

export type FeedOptions = Omit<JournalOptions, 'place' | 'after'> & {
  readonly place: Omit<JournalOptions['place'], 'id'>;
};

export class FeedFile {
  readonly completions = new Completions();
  private readonly options: FeedOptions;
  private journal: Journal | undefined;
  private rewriteBytes = REWRITE_BYTES;
  /** Each rewrite makes a journal with the next number, so that journals left by a crash are replayed in order. */
  private generation = 0;
  /** Cancels the rewrite that erases output of deleted processes. */
  private erasing: (() => void) | undefined;

  constructor(options: FeedOptions) {
    this.options = options;
  }

  async open(): Promise<void> {
    const { folder, disk } = this.options.place;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const old = Array.from(listJournals(folder)).sort(([a], [b]) => (a < b ? -1 : 1));
    const turns = new Turns();
    for (const [id, numbers] of old) {
      const { segments } = await openInTurns({ disk, folder, id, numbers }, turns);
      const seq = segments.at(-1)?.endSeq ?? 0;
      await this.replay(new EndedJournal(segments, { seq, offset: 0, lostBytes: 0 }));
      this.generation = Math.max(this.generation, generationOf(id));
    }
    // Remove the old journals only when the new one holds everything. One that cannot be removed is replayed before the
    // newer ones.
    if (!this.rewrite()) return;
    for (const [id, numbers] of old)
      for (const number of numbers) tryTo(() => disk.remove(join(folder, segmentName(id, number))));
  }

  /** The process was deleted; with `erases` what it printed goes, too. */
  processForgotten(serial: string, erases: boolean): void {
    if (this.completions.processForgotten(serial, erases)) this.eraseLater();
  }

  private eraseLater(): void {
    this.erasing ??= this.options.clock.after(ERASE_MS, () => this.replaceFile());
  }

  /** Call it from time to time: keeps the file small. */
  compact(): void {
    if ((this.journal?.bytesOnDisk ?? 0) >= this.rewriteBytes) this.replaceFile();
  }

  private replaceFile(): void {
    const { journal: old, erasing } = this;
    erasing?.();
    this.erasing = undefined;
    if (!old) return;
    if (this.rewrite()) {
      old.remove();
      this.rewriteBytes = REWRITE_BYTES;
      return;
    }
    // The disk refuses a new file: keep using the old one, which holds everything.
    this.journal?.remove();
    this.journal = old;
    this.completions.goOnWith(old);
    this.rewriteBytes = old.bytesOnDisk + REWRITE_AGAIN_BYTES;
    if (erasing) this.eraseLater();
  }

  /** False while the disk refuses: a keeper that is killed now loses acknowledgements. */
  get isStored(): boolean {
    return this.journal?.degraded === undefined;
  }

  /** Resolves when everything is written, or is in memory because the disk refuses, and no file is being created. */
  async close(): Promise<void> {
    if (this.erasing) this.replaceFile();
    this.erasing?.();
    await this.journal?.visible();
    this.journal?.release();
    await this.options.place.usage.unwantedCreated();
  }

  /** False if the disk refuses now: the feed stays in memory and is written later. */
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
