import { describe, expect, it } from 'vitest';
import { dice } from '../../test/support/random.ts';
import { sized } from '../../test/support/slow.ts';
import { globMatcher, GlobTooLong } from './glob.ts';

describe('a glob', () => {
  it('[H45] matches as the same regular expression does, in any case', () => {
    const roll = dice(7);
    const word = (letters: string, most: number): string =>
      Array.from({ length: roll.below(most) }, () => roll.pick(letters.split(''))).join('');
    for (let round = 0; round < sized(5000, 50_000); round += 1) {
      const [glob, name] = [word('aB*?.', 8), word('AbB.+', 8)];
      const source = glob.replaceAll('.', '\\.').replaceAll('*', '.*').replaceAll('?', '.');
      expect(globMatcher([glob])(name), `${glob} against ${name}`).toBe(
        new RegExp(`^${source}$`, 'is').test(name),
      );
    }
  });

  it('[H45] with many stars it backtracks to the last one only', () => {
    const name = 'a'.repeat(200);
    const hard = globMatcher([`${'*a'.repeat(20)}*b`], 10_000);
    expect(hard(name)).toBe(false);
    expect(hard(`${name}b`)).toBe(true);
  });

  it('[H45] it throws when all names together need too many steps', () => {
    const long = globMatcher([`*${'a'.repeat(500)}b`], 10_000);
    expect(() => long('a'.repeat(2000))).toThrow(GlobTooLong);
  });
});
