// What a host must have told so far, whoever asked: one start per key, no byte and no outcome taken back, each write id
// applied once, each completion told until it is acknowledged and never after. What is against that is a violation.

import type { Completion } from '../../src/protocol/host-api.ts';
import type { Outcome, ProcessInfo } from '../../src/protocol/process.ts';

export type Kind = 'prints' | 'copies' | 'stays';

interface Write {
  readonly writeId: string;
  readonly text: string;
  /** asked: it may have been applied or not. */
  state: 'asked' | 'applied';
}

/** One key, and all that was told of the process that was started for it. */
export interface Known {
  readonly key: string;
  readonly owner: string;
  readonly kind: Kind;
  readonly code: number;
  /** What it prints, when that is known beforehand. */
  readonly prints?: Buffer;
  id?: string;
  /** Keepers that were killed before it was asked for. */
  readonly keepersBefore: number;
  /** Keepers killed while its start had no answer: each may have run it, unrecorded. */
  unrecorded: number;
  output: Buffer;
  after: number;
  outcome?: Outcome;
  readonly writes: Write[];
  ending: 'no' | 'asked';
  killed: boolean;
  removed: 'no' | 'asked';
  /** The disk refused so much that something is missing, which was told. */
  missed: boolean;
}

export class Model {
  readonly violations: string[] = [];
  readonly known: Known[] = [];
  keepersKilled = 0;
  private readonly byId = new Map<string, Known>();
  /** By subscriber: what was told, and what was acknowledged. */
  private readonly told = new Map<string, Set<string>>();
  private readonly acknowledged = new Map<string, Set<string>>();

  wrong(text: string): void {
    this.violations.push(text);
  }

  expect(
    known: Omit<Known, 'keepersBefore' | 'unrecorded' | 'output' | 'after' | 'writes'>,
  ): Known {
    const made: Known = {
      ...known,
      keepersBefore: this.keepersKilled,
      unrecorded: 0,
      output: Buffer.alloc(0),
      after: 0,
      writes: [],
    };
    this.known.push(made);
    return made;
  }

  keeperKilled(): void {
    this.keepersKilled += 1;
    for (const each of this.known) if (each.id === undefined) each.unrecorded += 1;
  }

  started(known: Known, info: ProcessInfo): void {
    if (known.id !== undefined && known.id !== info.id)
      this.wrong(`key ${known.key}: first ${known.id}, then ${info.id}`);
    known.id = info.id;
    this.byId.set(info.id, known);
    this.ended(known, info.outcome, undefined);
  }

  /** `before`: the outcome that had been told when the question was asked. */
  ended(known: Known, outcome: Outcome | undefined, before: Outcome | undefined): void {
    if (!outcome) {
      if (before) this.wrong(`${known.key}: ${JSON.stringify(before)}, and then running`);
      return;
    }
    const text = JSON.stringify(outcome);
    if (known.outcome) {
      if (JSON.stringify(known.outcome) !== text)
        this.wrong(`${known.key}: first ${JSON.stringify(known.outcome)}, then ${text}`);
      return;
    }
    known.outcome = outcome;
    if (!this.possible(known, outcome))
      this.wrong(`${known.key} (${known.kind}): ended as ${text}`);
  }

  private possible(
    { kind, code, killed, ending, keepersBefore }: Known,
    outcome: Outcome,
  ): boolean {
    if (outcome.kind === 'lost') return this.keepersKilled > keepersBefore;
    if (outcome.kind === 'signal') return killed && outcome.signal === 'SIGKILL';
    if (outcome.kind !== 'exit' || outcome.code !== code) return false;
    return kind === 'prints' || (kind === 'copies' && ending === 'asked');
  }

  /** All output from the beginning, as far as it can be read. `told`: how much of it had been told before. */
  printed(known: Known, bytes: Buffer, told: number): void {
    if (bytes.length < told) {
      this.wrong(`${known.key}: ${told} bytes were told, and now only ${bytes.length}`);
      return;
    }
    const both = Math.min(bytes.length, known.output.length);
    if (!bytes.subarray(0, both).equals(known.output.subarray(0, both)))
      this.wrong(`${known.key}: bytes have changed`);
    if (bytes.length > known.output.length) known.output = bytes;
    const { prints } = known;
    if (prints && !prints.subarray(0, bytes.length).equals(bytes))
      this.wrong(`${known.key}: printed ${JSON.stringify(bytes.toString().slice(0, 80))}`);
  }

  /** It has ended by itself, and this is all that it printed. */
  whole(known: Known, bytes: Buffer): void {
    if (known.outcome?.kind !== 'exit' || known.missed) return;
    if (known.prints && bytes.length !== known.prints.length)
      this.wrong(`${known.key}: ${bytes.length} bytes instead of ${known.prints.length}`);
    if (known.kind === 'copies' && !copiedOnce(bytes.toString(), known.writes))
      this.wrong(`${known.key}: ${JSON.stringify(known.writes)} gave ${bytes.toString()}`);
  }

  completed(subscriber: string, completions: readonly Completion[]): void {
    const done = this.acknowledged.get(subscriber);
    const told = this.told.get(subscriber) ?? new Set();
    this.told.set(subscriber, told);
    for (const { number, id, outcome } of completions) {
      if (done?.has(id) === true)
        this.wrong(`${subscriber}: ${number} (${id}) after it was acknowledged`);
      told.add(id);
      const known = this.byId.get(id);
      if (known) this.ended(known, outcome, undefined);
    }
  }

  acknowledge(subscriber: string, ids: readonly string[]): void {
    const done = this.acknowledged.get(subscriber) ?? new Set();
    this.acknowledged.set(subscriber, done);
    for (const id of ids) done.add(id);
  }

  /** At the end: whose completion was never told to one of its owner's subscribers. */
  untold(subscriber: string, owner: string): void {
    const told = this.told.get(subscriber);
    for (const { id, key, outcome, owner: its } of this.known)
      if (its === owner && id !== undefined && outcome && told?.has(id) !== true)
        this.wrong(`${subscriber} was never told of ${key} (${id}), ${JSON.stringify(outcome)}`);
  }
}

/** Each applied text once, each other at most once, in their order, and nothing else. */
function copiedOnce(output: string, writes: readonly Write[]): boolean {
  let rest = output;
  for (const { text, state } of writes) {
    if (rest.startsWith(text)) rest = rest.slice(text.length);
    else if (state === 'applied') return false;
  }
  return rest === '';
}
