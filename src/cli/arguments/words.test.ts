// How the words of a command line are read.
import { describe, expect, it } from 'vitest';
import type { Command } from './command.ts';
import { commands } from '../commands.ts';
import { Words } from './words.ts';

const command: Command = {
  name: 'try',
  examples: ['holdfast try'],
  usage: 'ID [FILE]',
  summary: '',
  options: {
    follow: { type: 'boolean', short: 'f', about: '' },
    tail: { type: 'string', short: 'n', about: '' },
    env: { type: 'string', short: 'e', multiple: true, about: '' },
  },
  read: () => async () => ({ result: undefined }),
};

const read = (...args: string[]) => new Words(command, args);
const runs = (...args: string[]) => new Words({ ...command, runsWords: true }, args);

describe('words', () => {
  it('[C25] are read in every form that people write them in', () => {
    for (const args of [
      ['-fn5'],
      ['-f', '-n', '5'],
      ['--follow', '--tail=5'],
      ['--tail', '5', '-f'],
    ]) {
      const words = read('x', ...args, 'y');
      expect([words.flag('follow'), words.count('tail'), words.plain]).toEqual([
        true,
        5,
        ['x', 'y'],
      ]);
    }
    expect(read('--tail=-x').text('tail')).toBe('-x');
    expect(read('-e', 'A=1', '--env', 'B=2').texts('env')).toEqual(['A=1', 'B=2']);
    expect(read('-', '--', '--tail').plain).toEqual(['-', '--tail']);
    expect(read('--tail', '1', '--tail', '2').text('tail')).toBe('2');
  });

  it('[C3] end at the first one where they are a program and its arguments', () => {
    const words = runs('-f', 'npm', '--tail', '--', '-x');
    expect([words.flag('follow'), words.text('tail')]).toEqual([true, undefined]);
    expect([words.plain, words.behindDashes]).toEqual([['npm', '--tail', '--', '-x'], undefined]);
    expect(runs('--', 'npm').behindDashes).toEqual(['npm']);
  });

  it.each([
    [['--tial', '5'], 'try: unknown option --tial; did you mean --tail?'],
    [['-x'], 'try: unknown option -x.'],
    [['--tail'], 'try: --tail needs a value.'],
    [['--tail', '-f'], 'try: --tail needs a value; to pass "-f", write --tail=-f.'],
    [['--follow=yes'], 'try: --follow takes no value.'],
    [['--toString'], 'try: unknown option --toString.'],
  ])('[C27] that are wrong are named: %j', (args, problem) => {
    expect(() => read(...args)).toThrow(problem);
  });

  it('[C27] that are missing or too many are named', () => {
    const expected = ['ID', '[FILE]'];
    expect(() => read().expect(...expected)).toThrow('try: missing argument ID');
    expect(() => read('a', 'b', 'c').expect(...expected)).toThrow('unexpected argument "c"');
    expect(read('a').expect(...expected)).toEqual(['a']);
    expect(read('a', 'b', 'c').expect('ID...')).toEqual(['a', 'b', 'c']);
  });

  it('[C25] cannot be read any more once something is done, and no command reads them later', async () => {
    const words = read('-f');
    words.seal();
    expect(() => words.flag('follow')).toThrow('after the command has begun');
    const all = await Promise.all(Array.from(commands.values(), (load) => load()));
    const asynchronous = all.filter((module) => module.command.read.constructor !== Function);
    expect(asynchronous).toEqual([]);
  });
});
