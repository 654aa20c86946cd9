// One order over the rows of all hosts. A row's place is its time with a few bits of its host behind it, so a page can
// continue after it at any gateway, without a number that all hosts share.

import { createHash } from 'node:crypto';

const BITS = 128;
/** Above every place. */
export const FROM_THE_NEWEST = 2 ** 48 - 1;

/** Fits the 48 bits of a position until the year 2039. */
export function placeOf(atMs: number, salt: number): number {
  return atMs * BITS + (salt % BITS);
}

/** Rows before this time can be before the place. */
export function timeOf(place: number): number {
  return Math.floor(place / BITS) + 1;
}

export function saltOf(host: string): number {
  return createHash('sha256').update(host).digest()[0] ?? 0;
}

/**
 * How many of the sorted rows make a page: about `limit`. Rows of one place stay together, because the next page begins
 * behind a place.
 */
export function pageLength(places: readonly number[], limit: number): number {
  if (places.length <= limit) return places.length;
  let end = limit;
  while (end > 0 && places[end] === places[end - 1]) end -= 1;
  if (end > 0) return end;
  for (end = limit; places[end] === places[end - 1];) end += 1;
  return end;
}
