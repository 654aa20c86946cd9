// The completion feed: every subscriber gets each completion until it acknowledges it. The feed has its own journal, so
// that a restart neither loses nor repeats one.

import type { Completion, Owner } from '../../protocol/host-api.ts';
import { EVERYONE } from '../../protocol/host-api.ts';
import { MAX_LIST_CHARS } from '../../protocol/limits.ts';
import type { Journal } from '../../journal/write/journal.ts';

/** What the feed writes as notes of its journal, oldest first. */
export type FeedNote =
  | { readonly type: 'completion'; readonly serial: string; readonly completion: Completion }
  | { readonly type: 'acknowledged'; readonly reader: string; readonly numbers: readonly number[] }
  | { readonly type: 'forgotten'; readonly numbers: readonly number[] }
  /** The output of these was deleted: their last lines too. */
  | { readonly type: 'erased'; readonly numbers: readonly number[] }
  /** The first note of every file, so that a refusing disk is noticed at once. */
  | { readonly type: 'opened' };

interface Entry {
  readonly serial: string;
  readonly completion: Completion;
  acknowledgedBy: ReadonlySet<string>;
}

/** Shared by all completions that have no acknowledgement, because there may be thousands. */
const NOBODY: ReadonlySet<string> = new Set();

interface Question {
  readonly owner: Owner;
  readonly subscriber: string;
  /** Only completions with a higher number. */
  readonly after: number;
  readonly limit: number;
}

/** Remembered subscribers; the one that has not asked for longest is dropped first. */
const MOST_READERS = 256;
/**
 * Unacknowledged completions kept after their process was deleted; the oldest of the owner with most are dropped first.
 */
const MAX_UNACKNOWLEDGED = 4000;

export class Completions {
  private readonly entries = new Map<number, Entry>();
  private readonly numbers = new Map<string, number>();
  /**
   * By owner, the numbers whose process was deleted, oldest first. Only these may be dropped: the next keeper would
   * report the others again.
   */
  private readonly left = new Map<Owner, Set<number>>();
  private leftCount = 0;
  /** Subscribers that have asked or acknowledged, with their owner. */
  private readonly readers = new Map<string, Owner>();
  private lastNumber = 0;
  private journal: Journal | undefined;
  private readonly listeners = new Set<() => void>();

  /** Replays what an earlier keeper wrote. Call it before `recordTo`. */
  replay(note: FeedNote): void {
    if (note.type === 'completion') this.put(note.serial, note.completion);
    else if (note.type === 'acknowledged') this.mark(note.reader, note.numbers);
    else if (note.type === 'forgotten') for (const number of note.numbers) this.drop(number);
    else if (note.type === 'erased') for (const number of note.numbers) this.erase(number);
  }

  /** Writes everything to this journal from now on, beginning with the current state. */
  recordTo(journal: Journal): void {
    this.journal = journal;
    this.note({ type: 'opened' });
    const readers = new Map(
      Array.from(this.readers.keys(), (reader): [string, number[]] => [reader, []]),
    );
    for (const { serial, completion, acknowledgedBy } of this.entries.values()) {
      this.note({ type: 'completion', serial, completion });
      for (const reader of acknowledgedBy)
        readers.set(reader, [...(readers.get(reader) ?? []), completion.number]);
    }
    for (const [reader, numbers] of readers) this.note({ type: 'acknowledged', reader, numbers });
  }

  /** The same for a journal that already holds everything. */
  goOnWith(journal: Journal): void {
    this.journal = journal;
  }

  /** Call it after the replay with the processes that were found again. */
  processesFound(serials: ReadonlySet<string>): void {
    for (const entry of this.entries.values()) if (!serials.has(entry.serial)) this.leave(entry);
  }

  has(serial: string): boolean {
    return this.numbers.has(serial);
  }

  /** Number of the next completion. */
  get next(): number {
    return this.lastNumber + 1;
  }

  add(serial: string, completion: Completion): void {
    this.put(serial, completion);
    // Written with the other notes of this turn, or when it is read. After a crash before that, the process's journal
    // restores it.
    this.note({ type: 'completion', serial, completion });
    for (const listener of this.listeners) listener();
  }

  pending({ owner, subscriber, after, limit }: Question): Completion[] {
    const reader = readerName(owner, subscriber);
    if (!this.readers.has(reader)) this.noteReader(reader);
    this.remember(reader, owner);
    const found: Completion[] = [];
    let chars = 0;
    for (const { completion, acknowledgedBy } of this.entries.values()) {
      if (found.length >= limit || chars > MAX_LIST_CHARS) break;
      if (completion.number <= after || !sees(owner, completion) || acknowledgedBy.has(reader))
        continue;
      found.push(completion);
      chars += charsOf(completion);
    }
    return found;
  }

  /** Returns how many of the numbers were unacknowledged for this subscriber. */
  acknowledge(owner: Owner, subscriber: string, numbers: readonly number[]): number {
    const reader = readerName(owner, subscriber);
    const open = numbers.filter((number) => {
      const entry = this.entries.get(number);
      return (
        entry !== undefined && sees(owner, entry.completion) && !entry.acknowledgedBy.has(reader)
      );
    });
    if (open.length === 0) return 0;
    this.mark(reader, open);
    this.note({ type: 'acknowledged', reader, numbers: open });
    return open.length;
  }

  /**
   * Resolves when the current state is written. If the keeper is killed before that, a completion would be reported
   * again, or its number reused.
   */
  async stored(): Promise<void> {
    for (let journal = this.journal; journal; journal = this.journal) {
      try {
        await journal.visible();
        return;
      } catch (error) {
        // Another file, which holds everything, has replaced this one.
        if (journal === this.journal) throw error;
      }
    }
  }

  /**
   * The process was deleted. Completions that every subscriber has acknowledged are dropped with it. With `erases` the
   * others keep how it ended, but nothing that it printed; returns whether the file still has some of that.
   */
  processForgotten(serial: string, erases = false): boolean {
    const number = this.numbers.get(serial);
    const entry = number === undefined ? undefined : this.entries.get(number);
    const printed = erases && entry !== undefined && entry.completion.lastLines !== '';
    if (entry) this.leave(entry);
    const gone: number[] = [];
    if (number !== undefined && entry && this.isAcknowledged(entry)) gone.push(number);
    else if (this.leftCount > MAX_UNACKNOWLEDGED) gone.push(...this.oldestOfLargest());
    for (const each of gone) this.drop(each);
    if (gone.length > 0) this.note({ type: 'forgotten', numbers: gone });
    if (printed && number !== undefined && this.erase(number))
      this.note({ type: 'erased', numbers: [number] });
    return printed;
  }

  /** False if there is no such completion. */
  private erase(number: number): boolean {
    const entry = this.entries.get(number);
    if (!entry) return false;
    this.entries.set(number, { ...entry, completion: { ...entry.completion, lastLines: '' } });
    return true;
  }

  private leave({ completion: { owner, number } }: Entry): void {
    const numbers = this.left.get(owner);
    if (numbers?.has(number)) return;
    if (numbers) numbers.add(number);
    else this.left.set(owner, new Set([number]));
    this.leftCount += 1;
  }

  /** Drops completions of the owner with most, so that no owner loses any because of another. */
  private oldestOfLargest(): number[] {
    let most: Set<number> | undefined;
    for (const numbers of this.left.values()) if (!most || numbers.size > most.size) most = numbers;
    const [oldest] = most ?? [];
    return oldest === undefined ? [] : [oldest];
  }

  onNew(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private isAcknowledged({ acknowledgedBy, completion }: Entry): boolean {
    if (acknowledgedBy.size === 0) return false;
    for (const [reader, owner] of this.readers)
      if (sees(owner, completion) && !acknowledgedBy.has(reader)) return false;
    return true;
  }

  /** The next keeper knows the subscriber too: later completions are kept until it has acknowledged them. */
  private noteReader(reader: string): void {
    this.note({ type: 'acknowledged', reader, numbers: [] });
  }

  private remember(reader: string, owner: Owner): void {
    this.readers.delete(reader);
    this.readers.set(reader, owner);
    const [oldest] = this.readers.keys();
    if (this.readers.size > MOST_READERS && oldest !== undefined) this.readers.delete(oldest);
  }

  private put(serial: string, completion: Completion): void {
    const known = this.entries.get(completion.number);
    this.entries.set(completion.number, {
      serial,
      completion,
      acknowledgedBy: known?.acknowledgedBy ?? NOBODY,
    });
    this.numbers.set(serial, completion.number);
    this.lastNumber = Math.max(this.lastNumber, completion.number);
  }

  private mark(reader: string, numbers: readonly number[]): void {
    this.remember(reader, ownerOfReader(reader));
    for (const number of numbers) {
      const entry = this.entries.get(number);
      if (entry) entry.acknowledgedBy = new Set([...entry.acknowledgedBy, reader]);
    }
  }

  private drop(number: number): void {
    const entry = this.entries.get(number);
    if (!entry) return;
    this.entries.delete(number);
    this.numbers.delete(entry.serial);
    const { owner } = entry.completion;
    const left = this.left.get(owner);
    if (!left?.delete(number)) return;
    this.leftCount -= 1;
    if (left.size === 0) this.left.delete(owner);
  }

  private note(note: FeedNote): void {
    this.journal?.append({ kind: 'note', body: note });
  }
}

function readerName(owner: Owner, subscriber: string): string {
  return `${owner.length}:${owner}${subscriber}`;
}

function ownerOfReader(reader: string): Owner {
  const colon = reader.indexOf(':');
  return reader.slice(colon + 1, colon + 1 + Number(reader.slice(0, colon)));
}

/** An estimate of an answer's size. */
function charsOf({ command, lastLines, labels }: Completion): number {
  let chars = 512 + command.length + lastLines.length;
  for (const name in labels) chars += name.length + (labels[name]?.length ?? 0);
  return chars;
}

function sees(owner: Owner, completion: Completion): boolean {
  return owner === EVERYONE || owner === completion.owner;
}
