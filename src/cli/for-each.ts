// One action for each of several processes: all are tried, and what failed is told beside what was done.

import { toErrorShape } from '../protocol/errors.ts';
import type { Answer } from './command.ts';

export interface Done {
  readonly result: Readonly<Record<string, unknown>>;
  readonly line: string;
  readonly exitCode?: number;
}

export async function forEach(
  ids: readonly string[],
  action: (id: string) => Promise<Done>,
): Promise<Answer> {
  const settled = await Promise.allSettled(ids.map(action));
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
      results.push({ id: ids[index], error: toErrorShape(each.reason) });
      // The first is told at the end, with what to do.
      if (failures.length > 0)
        lines.push(`${ids[index]}  failed: ${toErrorShape(each.reason).message}`);
      failures.push(each.reason);
    }
  }
  const [error] = failures;
  return { result: results, lines, ...(error === undefined ? { exitCode } : { error }) };
}
