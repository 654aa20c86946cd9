// Random numbers that can be had again: a failure names its seed.

/** Mulberry32: small, and good enough to choose moments. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export type Dice = ReturnType<typeof dice>;

export function dice(seed: number) {
  const random = seeded(seed);
  const below = (most: number): number => Math.floor(random() * most);
  return {
    below,
    pick: <T>(items: readonly T[]): T => items[below(items.length)] as T,
    chance: (share: number): boolean => random() < share,
  };
}
