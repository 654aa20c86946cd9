import * as fc from '../../../test/support/properties.ts';
import { describe, expect, it } from 'vitest';
import { Preamble } from './preamble.ts';

const FISH = '\x1b[?2004l\x1b]0;echo hi ~\x07\x1b[30m\x1b(B\x1b[m\r';

function lengthOf(chunks: readonly string[]): number {
  const preamble = new Preamble();
  for (const chunk of chunks) if (!preamble.goesOn(Buffer.from(chunk, 'latin1'))) break;
  return preamble.length;
}

describe('Preamble', () => {
  it('[TM41] ends where the output of the command begins, however it is cut', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('', 'hi\r\n', '\x1b[31mred', '\x1b[2Jclear', '\x1b[?1049hfull'),
        fc.array(fc.nat({ max: FISH.length + 10 })),
        (output, cuts) => {
          const all = FISH + output;
          const at = Array.from(new Set([0, ...cuts, all.length]))
            .filter((cut) => cut <= all.length)
            .toSorted((a, b) => a - b);
          expect(lengthOf(at.map((cut, index) => all.slice(cut, at[index + 1])))).toBe(FISH.length);
        },
      ),
    );
  });

  it('[TM41] is nothing where there is none, and no title without an end swallows output', () => {
    expect(lengthOf(['\rprogress'])).toBe(0);
    expect(lengthOf(['\x1b]0;never ended', 'x'.repeat(10_000)])).toBe(0);
  });
});
