// Which process a word on the command line means.

import { describe, expect, it } from 'vitest';
import { choose } from './caller.ts';

const process = (
  id: string,
  name?: string,
  state: 'running' | 'closed' = 'closed',
  owner = 'cli',
) => ({
  id,
  owner,
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
    expect(choose(listed, 'abcd', 'cli')?.id).toBe('abcd');
    expect(choose(listed, 'zyxw', 'cli')?.id).toBe('abcd');
    expect(choose(listed, 'web', 'cli')?.id).toBe('abcdefgh');
  });

  it('[C9] of four characters or more means the one whose id begins so; of fewer, none', () => {
    expect(choose(listed, 'zyxwv', 'cli')?.id).toBe('zyxwvuts');
    expect(choose(listed, 'abcdex', 'cli')?.id).toBe('abcdexyz');
    for (const short of ['', 'z', 'zy', 'zyx'])
      expect(choose(listed, short, 'cli')).toBeUndefined();
  });

  it('[C9] that several ids begin with is refused, and they are named', () => {
    expect(() => choose(listed, 'abcde', 'cli')).toThrow(
      '"abcde" matches 2 processes (abcdefgh, abcdexyz): give more of the id.',
    );
  });

  it("[H47] means the caller's own process before those of other owners, as id, name or beginning", () => {
    const mine = process('abcdefgh', 'web');
    const squat = [
      process('zzzzzzzz', 'abcdef', 'running', 'mallory'),
      process('abcdef', undefined, 'running', 'mallory'),
      process('web', undefined, 'running', 'mallory'),
    ];
    for (const text of ['abcdefgh', 'abcdef', 'web'])
      expect(choose([...squat, mine], text, 'cli')?.owner).toBe('cli');
  });

  it("[H47] that is one owner's name and the beginning of another's id is refused", () => {
    const listed = [
      process('abcdefgh', undefined, 'running', 'alice'),
      process('zyxwvuts', 'abcdef', 'running', 'mallory'),
      process('same', undefined, 'running', 'alice'),
      process('same', undefined, 'running', 'mallory'),
    ];
    expect(() => choose(listed, 'abcdef', 'cli')).toThrow(
      '"abcdef" matches 2 processes (zyxwvuts of mallory, abcdefgh of alice): name the owner with --owner.',
    );
    expect(() => choose(listed, 'same', 'cli')).toThrow(
      '"same" matches 2 processes (owner alice, owner mallory): name the owner with --owner.',
    );
    expect(choose(listed, 'abcdefg', 'cli')?.owner).toBe('alice');
    expect(choose(listed, 'same', 'alice')?.owner).toBe('alice');
  });
});
