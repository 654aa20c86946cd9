// What a subscriber has acknowledged: everything up to a number, and single ones above it. It is kept in JetStream; two
// gateways that change it at once change it one after the other.

import { HoldfastError } from '../../protocol/errors.ts';
import type { Owner } from '../../protocol/host-api.ts';
import { Refused, type Store } from './store.ts';
import { KEPT, ledgerSubjects } from './streams.ts';

export interface Acknowledged {
  readonly floor: number;
  readonly above: ReadonlySet<number>;
}

interface Read extends Acknowledged {
  /** Of the message that says it. */
  readonly seq: number;
}

export interface Subscriber {
  readonly owner: Owner;
  readonly name: string;
}

/** A subscriber that leaves one behind can acknowledge this many above it. */
const MOST_ABOVE = 50_000;
const MOST_TRIES = 100;

export async function readAcknowledged(store: Store, { owner, name }: Subscriber): Promise<Read> {
  const stored = await store.last(KEPT, ledgerSubjects.kept('ack', owner, name));
  if (!stored) return { floor: 0, above: new Set(), seq: 0 };
  const { floor, steps } = JSON.parse(Buffer.from(stored.bytes).toString()) as {
    floor: number;
    steps: readonly number[];
  };
  let last = floor;
  return { floor, above: new Set(steps.map((step) => (last += step))), seq: stored.seq };
}

export function isAcknowledged({ floor, above }: Acknowledged, number: number): boolean {
  return number <= floor || above.has(number);
}

interface Acknowledging {
  readonly subscriber: Subscriber;
  readonly numbers: readonly number[];
  /** The numbers that this subscriber sees, above one of them. */
  readonly ends: (after: number) => Iterable<number>;
  /** How many of the numbers were open at the first try: a later one may find what it has stored itself. */
  count?: number;
}

export async function acknowledge(store: Store, given: Acknowledging): Promise<number> {
  const { subscriber, numbers, ends } = given;
  const { owner, name } = subscriber;
  const subject = ledgerSubjects.kept('ack', owner, name);
  const wanted = new Set(numbers);
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const before = await readAcknowledged(store, subscriber);
    const open = [...ends(before.floor)].filter(
      (number) => wanted.has(number) && !before.above.has(number),
    );
    given.count ??= open.length;
    if (open.length === 0) return given.count;
    const above = new Set([...before.above, ...open]);
    let { floor } = before;
    for (const number of ends(before.floor)) {
      if (!above.delete(number)) break;
      floor = number;
    }
    try {
      await store.append(subject, encoded({ floor, above }), before.seq);
      return given.count;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
  }
  throw new HoldfastError('limit_reached', 'Too many acknowledge at the same time.');
}

/** As steps from one to the next, which are short. */
function encoded({ floor, above }: Acknowledged): Buffer {
  if (above.size > MOST_ABOVE) {
    const problem = `More than ${MOST_ABOVE} completions are acknowledged above one that is not.`;
    throw new HoldfastError('limit_reached', problem, { remedy: 'Acknowledge the oldest ones.' });
  }
  let last = floor;
  const steps = [...above]
    .filter((number) => number > floor)
    .sort((a, b) => a - b)
    .map((number) => {
      const step = number - last;
      last = number;
      return step;
    });
  return Buffer.from(JSON.stringify({ floor, steps }));
}
