// fast-check with the seed of this test run (test/support/random.ts), so that a run finds the same as the one before it.
// With SLOW=1 a property is tried ten times as often. A failure prints the seed and the path to its smallest example.

import * as fc from 'fast-check';
import { SEED } from './random.ts';
import { isSlowRun } from './slow.ts';

export * from 'fast-check';

const WIDER = 10;

type Parameters<T> = fc.Parameters<T>;

/** As fast-check's own, which it takes the place of. */
export const assert: typeof fc.assert = ((
  property: fc.IRawProperty<unknown>,
  { numRuns = 100, ...more }: Parameters<unknown> = {},
) =>
  fc.assert(property, {
    seed: SEED,
    ...more,
    numRuns: isSlowRun ? numRuns * WIDER : numRuns,
  })) as typeof fc.assert;
