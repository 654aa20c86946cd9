// The filter of the list: words that must all be found, and a few with a meaning of their own.
//   owner:cli  name:web  label:chat=7  is:running  is:failed  is:ended  is:terminal  -word

import type { ProcessInfo } from '../../protocol/process.ts';
import { hasFailed } from './state-words.ts';

type Test = (process: ProcessInfo) => boolean;

const STATES: Readonly<Record<string, Test>> = {
  running: ({ outcome }) => outcome === undefined,
  ended: ({ outcome }) => outcome !== undefined,
  failed: hasFailed,
  lost: ({ state }) => state === 'lost',
  terminal: ({ streams }) => streams === 'pty',
};

export function parseFilter(text: string): Test {
  const tests = text.toLowerCase().split(/\s+/).filter(Boolean).map(testOf);
  return (process) => tests.every((test) => test(process));
}

function testOf(word: string): Test {
  if (word.startsWith('-') && word.length > 1) {
    const test = testOf(word.slice(1));
    return (process) => !test(process);
  }
  const [, field = '', value = ''] = /^(owner|name|label|is):(.*)$/.exec(word) ?? [];
  if (field === 'is') return STATES[value] ?? (() => true);
  if (field === 'owner') return ({ owner }) => owner.toLowerCase().includes(value);
  if (field === 'name') return ({ name = '' }) => name.toLowerCase().includes(value);
  if (field === 'label')
    return ({ labels = {} }) =>
      Object.entries(labels).some(([name, text]) =>
        `${name}=${text}`.toLowerCase().includes(value),
      );
  return ({ command, name = '', owner, id }) =>
    command.toLowerCase().includes(word) ||
    name.toLowerCase().includes(word) ||
    owner.toLowerCase().includes(word) ||
    id.startsWith(word);
}
