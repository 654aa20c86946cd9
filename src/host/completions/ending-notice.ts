// What a completion says of a process that has exited.

import type { Clock } from '../../base/clock.ts';
import type { Completion } from '../../protocol/host-api.ts';
import { shortFacts } from '../process/facts.ts';
import type { HeldProcess } from '../process/held-process.ts';
import { lastLines } from '../process/views.ts';

/** Of the output's end, in a completion. */
const LAST_LINES_BYTES = 1024;

export async function endingNotice(
  process: HeldProcess,
  clock: Clock,
): Promise<Omit<Completion, 'number' | 'outcome'>> {
  const durationMs = process.durationMs();
  const bytes = process.journal.visibleOffset;
  const text = await lastLines(process.journal, LAST_LINES_BYTES).catch(() => '');
  const usage = process.use.usage(process.settled);
  return {
    ...shortFacts(process.facts),
    durationMs,
    ...(usage && { usage }),
    ...(process.causes.length > 0 && { causes: process.causes }),
    ...(process.facts.confinement && { confinement: process.facts.confinement }),
    bytes,
    lastLines: text,
    atMs: clock.wallMs(),
  };
}
