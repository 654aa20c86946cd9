// One action for each of several processes: all are tried, and failures are reported beside the results.

import { toErrorShape } from '../protocol/errors.ts';
import type { Answer } from './arguments/command.ts';

export interface Done {
  readonly result: Readonly<Record<string, unknown>>;
  readonly line: string;
  readonly exitCode?: number;
}

export async function forEach<T>(
  items: readonly T[],
  nameOf: (item: T) => string,
  action: (item: T) => Promise<Done>,
): Promise<Answer> {
  const settled = await Promise.allSettled(items.map(action));
  const names = items.map(nameOf);
  const results: unknown[] = [];
  const lines: string[] = [];
  const failures: unknown[] = [];
  let exitCode = 0;
  for (const [index, each] of settled.entries()) {
    if (each.status === 'fulfilled') {
      results.push(each.value.result);
      lines.push(each.value.line);
      exitCode ||= each.value.exitCode ?? 0;
    } else {
      results.push({ id: names[index], error: toErrorShape(each.reason) });
      // The first failure is printed at the end, with its remedy.
      if (failures.length > 0)
        lines.push(`${names[index]}  failed: ${toErrorShape(each.reason).message}`);
      failures.push(each.reason);
    }
  }
  const [error] = failures;
  return { result: results, lines, ...(error === undefined ? { exitCode } : { error }) };
}

/** For each process that a word of the command line names. */
export function forEachNamed(
  words: readonly string[],
  action: (word: string) => Promise<Done>,
): Promise<Answer> {
  return forEach(words, String, action);
}
