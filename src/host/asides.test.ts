import { array, assert, boolean, property } from 'fast-check';
import { expect, it } from 'vitest';
import { Asides } from './asides.ts';

it('[CX24] a place among all events and a place among those that are no asides tell each other', () => {
  assert(
    property(array(boolean(), { maxLength: 200 }), (kinds) => {
      const asides = new Asides();
      // The first event is always an aside.
      const events = [true, ...kinds].map((isAside, index) => ({ isAside, seq: index + 1 }));
      for (const { isAside, seq } of events.slice(1)) if (isAside) asides.add(seq);
      const others = events.filter(({ isAside }) => !isAside);
      for (const [index, { seq }] of others.entries()) {
        expect(asides.seqOf(index + 1)).toBe(seq);
        expect(seq - asides.upTo(seq)).toBe(index + 1);
      }
      expect(asides.seqOf(0)).toBe(0);
      // Beyond the end: as if everything to come were no aside.
      expect(asides.seqOf(others.length + 5)).toBe(events.length + 5);
    }),
  );
});

it('[CX24] a page is told its asides and what was counted before it', () => {
  const asides = new Asides();
  for (const seq of [4, 5, 9]) asides.add(seq);
  expect(asides.ofPage(4, 8, 10)).toEqual({ before: 2, after: 4, seqs: [5], count: 6 });
  expect(asides.ofPage(0, 10, 10)).toEqual({ before: 0, after: 0, seqs: [1, 4, 5, 9], count: 6 });
});
