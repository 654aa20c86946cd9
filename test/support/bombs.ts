// Bytes that cost a terminal emulator much: counts without measure, strings without end, work without use. Each is what a
// program (or a file that somebody looks at) might print. Kept as data (what comes first, what is repeated and how often,
// what comes last), as the benchmark uses them too.

import { readFileSync } from 'node:fs';

type Recipe = readonly [first: string, repeated: string, times: number, last: string];

const recipes = JSON.parse(
  readFileSync(new URL('./bombs.json', import.meta.url), 'utf8'),
) as Record<string, Recipe>;

export const bombs: Readonly<Record<string, () => Buffer>> = Object.fromEntries(
  Object.entries(recipes).map(([name, recipe]) => [name, () => build(recipe)]),
);

function build([first, repeated, times, last]: Recipe): Buffer {
  const middle = repeated.includes('{n}')
    ? Array.from({ length: times }, (_, n) => repeated.replace('{n}', String(n))).join('')
    : repeated.repeat(times);
  return Buffer.from(first + middle + last);
}
