// Random numbers that can be had again. Every run of the tests uses the same seed, unless SEED names another one;
// SEED=random chooses one and prints it (test/support/global-setup.ts).

export const SEED = Number(process.env['SEED'] ?? 1);

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

/** So many random changes of a text; as latin1 it is changed byte by byte. */
export function mutate(
  text: string,
  { roll, tokens, times }: { roll: Dice; tokens: readonly string[]; times: number },
): string {
  let now = text;
  for (let n = 0; n < times; n += 1) {
    const at = roll.below(now.length + 1);
    const length = roll.below(Math.min(40, now.length - at + 1));
    const changes = [
      () => now.slice(0, at) + roll.pick(tokens) + now.slice(at),
      () => now.slice(0, at) + now.slice(at + length),
      () => now.slice(0, at) + now.slice(at, at + length).repeat(1 + roll.below(8)) + now.slice(at),
      () => now.slice(0, at) + String.fromCharCode(roll.below(256)) + now.slice(at + 1),
      () => now.slice(0, at),
    ];
    now = roll.pick(changes)();
  }
  return now;
}
