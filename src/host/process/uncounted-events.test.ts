import { array, assert, boolean, property } from '../../../test/support/properties.ts';
import { expect, it } from 'vitest';
import { UncountedEvents } from './uncounted-events.ts';

it('[CX24] a position among all events and one among the counted events convert into each other', () => {
  assert(
    property(array(boolean(), { maxLength: 200 }), (kinds) => {
      const uncounted = new UncountedEvents();
      // The first event is always uncounted.
      const events = [true, ...kinds].map((isUncounted, index) => ({
        isUncounted,
        seq: index + 1,
      }));
      for (const { isUncounted, seq } of events.slice(1)) if (isUncounted) uncounted.add(seq);
      const others = events.filter(({ isUncounted }) => !isUncounted);
      for (const [index, { seq }] of others.entries()) {
        expect(uncounted.seqOf(index + 1)).toBe(seq);
        expect(seq - uncounted.upTo(seq)).toBe(index + 1);
      }
      expect(uncounted.seqOf(0)).toBe(0);
      // Beyond the end: as if every event to come were counted.
      expect(uncounted.seqOf(others.length + 5)).toBe(events.length + 5);
    }),
  );
});

it('[CX24] a page carries its uncounted events and how many came before it', () => {
  const uncounted = new UncountedEvents();
  for (const seq of [4, 5, 9]) uncounted.add(seq);
  expect(uncounted.ofPage(4, 8, 10)).toEqual({ before: 2, after: 4, seqs: [5], count: 6 });
  expect(uncounted.ofPage(0, 10, 10)).toEqual({
    before: 0,
    after: 0,
    seqs: [1, 4, 5, 9],
    count: 6,
  });
});
