import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    reporters: ['default', './test/support/tally.ts'],
    pool: 'forks',
    // One more than there are processors: many tests wait for a process or for a time.
    maxWorkers: availableParallelism() + 1,
    // The slowest case starts hundreds of real processes; a hang still ends as a failure that names itself.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
