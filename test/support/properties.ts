// fast-check with the seed of this test run (test/support/random.ts), so that a run finds the same as the one before it.
// The seed is fixed, so more cases find nothing new from run to run: `npm test` tries a third of what a property asks for,
// SLOW=1 thirty times as many. A failure prints the seed and the path to its smallest example.

import * as fc from 'fast-check';
import { SEED } from './random.ts';
import { isSlowRun } from './slow.ts';

export * from 'fast-check';

const WIDER = 10;
const NARROWER = 3;

type Parameters<T> = fc.Parameters<T>;

/** As fast-check's own, which it takes the place of. */
export const assert: typeof fc.assert = ((
  property: fc.IRawProperty<unknown>,
  { numRuns = 100, ...more }: Parameters<unknown> = {},
) =>
  fc.assert(property, {
    seed: SEED,
    ...more,
    numRuns: Math.ceil(isSlowRun ? numRuns * WIDER : numRuns / NARROWER),
  })) as typeof fc.assert;
