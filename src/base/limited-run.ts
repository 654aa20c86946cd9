// Runs a function with a time limit, such as a parser of a hostile file.

import { Script } from 'node:vm';

export class RanTooLong extends Error {}

const NAME = 'holdfastLimitedRun';
/** V8 can interrupt only a script, so a script calls the function. */
const script = new Script(`${NAME}()`);
const shared = globalThis as { [NAME]?: (() => unknown) | undefined };

export function runLimited<T>(act: () => T, limitMs: number): T {
  shared[NAME] = act;
  try {
    return script.runInThisContext({ timeout: limitMs }) as T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    throw new RanTooLong(`It took more than ${limitMs} ms.`, { cause: error });
  } finally {
    shared[NAME] = undefined;
  }
}
