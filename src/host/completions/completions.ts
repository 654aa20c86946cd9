// The completion feed: each finished process is told once to every subscriber, again and again until that subscriber
// acknowledges it, and never after. Kept in a journal of its own, so that a restart neither forgets nor repeats.

import type { Completion, Owner } from '../../protocol/host-api.ts';
import { EVERYONE } from '../../protocol/host-api.ts';
import { MAX_LIST_CHARS } from '../../protocol/limits.ts';
import type { Journal } from '../../journal/write/journal.ts';

/** What the feed writes down, oldest first, as notes of its journal. */
export type FeedNote =
  | { readonly type: 'completion'; readonly serial: string; readonly completion: Completion }
  | { readonly type: 'acknowledged'; readonly reader: string; readonly numbers: readonly number[] }
  | { readonly type: 'forgotten'; readonly numbers: readonly number[] }
  /** Begins every file, so that a disk that takes nothing is noticed when it is opened. */
  | { readonly type: 'opened' };

interface Entry {
  readonly serial: string;
  readonly completion: Completion;
  acknowledgedBy: ReadonlySet<string>;
}

/** Shared by all that nobody has acknowledged yet: thousands are kept. */
const NOBODY: ReadonlySet<string> = new Set();

interface Question {
  readonly owner: Owner;
  readonly subscriber: string;
  /** Only those with a higher number. */
  readonly after: number;
  readonly limit: number;
}

/** Readers that are remembered; who has not asked for longest goes first. */
const MOST_READERS = 256;
/** Unacknowledged completions kept after their process was forgotten; the oldest of the owner that has most go first. */
const KEEP_UNTOLD = 4000;

export class Completions {
  private readonly entries = new Map<number, Entry>();
  private readonly numbers = new Map<string, number>();
  /**
   * Of these, by owner, the numbers whose process is gone, oldest first. Only they may be dropped: of the others the next
   * keeper would tell again.
   */
  private readonly left = new Map<Owner, Set<number>>();
  private leftCount = 0;
  /** Whoever has asked or acknowledged, with the owner in whose name. */
  private readonly readers = new Map<string, Owner>();
  private lastNumber = 0;
  private journal: Journal | undefined;
  private readonly listeners = new Set<() => void>();

  /** Replays what an earlier keeper wrote; to be called before `recordTo`. */
  replay(note: FeedNote): void {
    if (note.type === 'completion') this.put(note.serial, note.completion);
    else if (note.type === 'acknowledged') this.mark(note.reader, note.numbers);
    else if (note.type === 'forgotten') for (const number of note.numbers) this.drop(number);
  }

  /** From here on everything is written to this journal, beginning with what is known now. */
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

  /** The same for one that holds everything already. */
  goOnWith(journal: Journal): void {
    this.journal = journal;
  }

  /** Which processes were found again, after everything was replayed. */
  processesFound(serials: ReadonlySet<string>): void {
    for (const entry of this.entries.values()) if (!serials.has(entry.serial)) this.leave(entry);
  }

  has(serial: string): boolean {
    return this.numbers.has(serial);
  }

  /** The number of the next one. */
  get next(): number {
    return this.lastNumber + 1;
  }

  add(serial: string, completion: Completion): void {
    this.put(serial, completion);
    // Written with this turn's other notes, or when it is told. A crash before that is made good from the process's journal.
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

  /** Answers how many of the numbers were open for this subscriber. */
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
   * Resolves when what is known so far is written. What is answered before that is taken back when the keeper is killed:
   * it would be told again, or its number given to another.
   */
  async stored(): Promise<void> {
    for (let journal = this.journal; journal; journal = this.journal) {
      try {
        await journal.visible();
        return;
      } catch (error) {
        // Another file, which holds all of it, has taken its place.
        if (journal === this.journal) throw error;
      }
    }
  }

  /** The process is gone. What every reader has acknowledged goes with it; the rest stays to be told. */
  processForgotten(serial: string): void {
    const number = this.numbers.get(serial);
    const entry = number === undefined ? undefined : this.entries.get(number);
    if (entry) this.leave(entry);
    const gone: number[] = [];
    if (number !== undefined && entry && this.told(entry)) gone.push(number);
    else if (this.leftCount > KEEP_UNTOLD) gone.push(...this.oldestOfLargest());
    for (const each of gone) this.drop(each);
    if (gone.length > 0) this.note({ type: 'forgotten', numbers: gone });
  }

  private leave({ completion: { owner, number } }: Entry): void {
    const numbers = this.left.get(owner);
    if (numbers?.has(number)) return;
    if (numbers) numbers.add(number);
    else this.left.set(owner, new Set([number]));
    this.leftCount += 1;
  }

  /** Of the owner that has most of them, so that nobody's are pushed out by another's. */
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

  private told({ acknowledgedBy, completion }: Entry): boolean {
    if (acknowledgedBy.size === 0) return false;
    for (const [reader, owner] of this.readers)
      if (sees(owner, completion) && !acknowledgedBy.has(reader)) return false;
    return true;
  }

  /** The next keeper knows it, too: what ends from now on is kept until this reader has it. */
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

/** About so many: what an answer may hold is counted, not measured. */
function charsOf({ command, lastLines, labels }: Completion): number {
  let chars = 512 + command.length + lastLines.length;
  for (const name in labels) chars += name.length + (labels[name]?.length ?? 0);
  return chars;
}

function sees(owner: Owner, completion: Completion): boolean {
  return owner === EVERYONE || owner === completion.owner;
}
