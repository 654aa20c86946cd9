// Which process a word on the command line means.

import { describe, expect, it } from 'vitest';
import { choose } from './caller.ts';

const process = (id: string, name?: string, state: 'running' | 'closed' = 'closed') => ({
  id,
  owner: 'cli',
  state,
  ...(name !== undefined && { name }),
});

describe('a word', () => {
  const listed = [
    process('abcdefgh', 'web', 'running'),
    process('abcdexyz', 'web'),
    process('zyxwvuts', 'abcd'),
    process('abcd', 'zyxw'),
  ];

  it('[C9] that is an id or a name means that one before one whose id only begins so', () => {
    expect(choose(listed, 'abcd')?.id).toBe('abcd');
    expect(choose(listed, 'zyxw')?.id).toBe('abcd');
    expect(choose(listed, 'web')?.id).toBe('abcdefgh');
  });

  it('[C9] of four characters or more means the one whose id begins so; of fewer, none', () => {
    expect(choose(listed, 'zyxwv')?.id).toBe('zyxwvuts');
    expect(choose(listed, 'abcdex')?.id).toBe('abcdexyz');
    for (const short of ['', 'z', 'zy', 'zyx']) expect(choose(listed, short)).toBeUndefined();
  });

  it('[C9] that several ids begin with is refused, and they are named', () => {
    expect(() => choose(listed, 'abcde')).toThrow(
      '"abcde" means 2 processes (abcdefgh, abcdexyz): give more of the id.',
    );
  });
});
