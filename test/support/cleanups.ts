// What a test has begun and has to end, whatever becomes of the test.

const cleanups: (() => Promise<void> | void)[] = [];

export function onCleanup(cleanup: () => Promise<void> | void): void {
  cleanups.push(cleanup);
}

/** Every one of them is done, whatever the others meet; what they met fails the test. */
export async function cleanUp(): Promise<void> {
  const problems: unknown[] = [];
  for (const cleanup of cleanups.splice(0).toReversed()) {
    try {
      await cleanup();
    } catch (error) {
      problems.push(error);
    }
  }
  if (problems.length > 0) throw new AggregateError(problems, problems.map(String).join('; '));
}
