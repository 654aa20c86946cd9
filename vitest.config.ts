import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** What is loaded, opened or handled in the process itself is their subject. */
const OWN_PROCESS = ['src/system/**/*.test.ts'];

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/each-file.ts'],
    reporters: ['default', './test/support/tally.ts'],
    pool: 'forks',
    // One more than there are processors: many tests wait for a process or for a time.
    maxWorkers: availableParallelism() + 1,
    // The slowest case starts hundreds of real processes; a hang still ends as a failure that names itself.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    projects: [
      // Unit tests share their workers: a program and its modules for each file take longer than most of them.
      {
        extends: true,
        test: {
          name: 'units',
          include: ['src/**/*.test.ts'],
          exclude: OWN_PROCESS,
          isolate: false,
        },
      },
      { extends: true, test: { name: 'journeys', include: ['test/**/*.test.ts', ...OWN_PROCESS] } },
    ],
  },
});
