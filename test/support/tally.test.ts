// The watch over a test run: which files it waits for.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { TestCase, TestModule } from 'vitest/node';
import Tally from './tally.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** As far as the watch looks at them. */
function moduleOf(tests: readonly { timeout: number }[]): TestModule {
  const cases = tests.map((options) => ({ options }) as Partial<TestCase> as TestCase);
  return {
    moduleId: 'x',
    children: { allTests: () => cases },
  } as unknown as TestModule;
}

it('[A20] a file that has ended is not waited for, whatever is told of it afterwards', () => {
  const tally = new Tally();
  const module = moduleOf([{ timeout: 1000 }]);
  tally.onTestModuleCollected(module);
  expect(vi.getTimerCount()).toBe(1);
  tally.onTestModuleEnd(module);
  tally.onTestCaseResult({ module } as Partial<TestCase> as TestCase);
  expect(vi.getTimerCount()).toBe(0);
});
