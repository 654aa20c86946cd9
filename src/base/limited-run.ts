// Runs a function that may never return, such as a parser given a hostile file, and stops it when it takes too long.

import { Script } from 'node:vm';

export class RanTooLong extends Error {}

const NAME = 'holdfastLimitedRun';
/** Only a script can be stopped, so a script calls the function. */
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
