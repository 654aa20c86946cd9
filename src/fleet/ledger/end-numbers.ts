// The numbers of the ends in the ledger, by owner. A number is made of the time of the ledger, the number of the message and
// the place in it: it grows with the ledger, also when that is made anew, and every gateway finds the same one. It is even;
// numbers by time (fleet-order.ts), which a fleet without a ledger uses, are odd.

import type { Owner } from '../../protocol/host-api.ts';
import { MOST_ENTRIES } from './entries.ts';

/** As many as fleet-order.ts has for a millisecond: a ledger with fewer messages stays below one that is made later. */
const PER_MESSAGE = 2 * MOST_ENTRIES;

export function numberOf(epochMs: number, seq: number, index: number): number {
  return (epochMs + seq) * PER_MESSAGE + 2 * index;
}

export function messageOf(epochMs: number, number: number): number {
  return Math.floor(number / PER_MESSAGE) - epochMs;
}

export function isByTime(number: number): boolean {
  return number % 2 === 1;
}

export class EndNumbers {
  private readonly byOwner = new Map<Owner, number[]>();
  private all: number[] = [];

  add(owner: Owner, number: number): void {
    this.all.push(number);
    const own = this.byOwner.get(owner);
    if (own) own.push(number);
    else this.byOwner.set(owner, [number]);
  }

  /** In order; of one owner, or of all. */
  *after(owner: Owner | undefined, after: number): Iterable<number> {
    const numbers = owner === undefined ? this.all : (this.byOwner.get(owner) ?? []);
    for (let index = firstAbove(numbers, after); index < numbers.length; index += 1)
      yield numbers[index] as number;
  }

  /** The ledger no longer has these. */
  dropBelow(number: number): void {
    if (!((this.all[0] ?? Infinity) < number)) return;
    this.all = this.all.slice(firstAbove(this.all, number - 1));
    for (const [owner, numbers] of this.byOwner) {
      const left = numbers.slice(firstAbove(numbers, number - 1));
      if (left.length === 0) this.byOwner.delete(owner);
      else if (left.length < numbers.length) this.byOwner.set(owner, left);
    }
  }

  clear(): void {
    this.byOwner.clear();
    this.all = [];
  }
}

/** Its index in ascending numbers. */
function firstAbove(numbers: readonly number[], value: number): number {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((numbers[middle] as number) > value) high = middle;
    else low = middle + 1;
  }
  return low;
}
