import { expect, test } from 'vitest';
import { builtFile } from './built-file.ts';

test('[S14] a worker is found in dist, from a source file and from a built file', () => {
  const find = (from: string): string => builtFile(from, './search-worker.js').href;
  expect(find('file:///a/src/journal/matcher.ts')).toBe('file:///a/dist/journal/search-worker.js');
  expect(find('file:///usr/src/a%20b/src/journal/matcher.ts')).toBe(
    'file:///usr/src/a%20b/dist/journal/search-worker.js',
  );
  expect(find('file:///usr/src/a/dist/journal/matcher.js')).toBe(
    'file:///usr/src/a/dist/journal/search-worker.js',
  );
  expect(find('file:///a/dist/journal/matcher.js')).toBe('file:///a/dist/journal/search-worker.js');
});
