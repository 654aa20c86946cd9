// Recovers the processes of an earlier keeper: finished ones as they were, and unfinished ones as lost, never as
// running. A lost process gets its last two events here, so that its journal is finished like any other.

import type { Turns } from '../base/turns.ts';
import {
  listJournals,
  openInTurns,
  type FinishedJournal,
  type UnfinishedJournal,
} from '../journal/read/recovery.ts';
import { EndedJournal } from '../journal/read/ended-journal.ts';
import { Journal } from '../journal/write/journal.ts';
import type { Outcome } from '../protocol/process.ts';
import { factsOf, type Ending, type ProcessFacts } from './process/facts.ts';
import { HeldProcess } from './process/held-process.ts';
import type { ProcessDeps } from './process/process-deps.ts';
import type { StarterOptions } from './start/starter.ts';

export interface Recovery {
  /** In the order in which they closed. */
  readonly recovered: readonly HeldProcess[];
  /** Journals without an event: no caller got an answer to their start. */
  readonly unrecorded: readonly string[];
}

/** A journal that cannot be read is reported and skipped. */
export async function recoverProcesses(
  options: StarterOptions,
  report: (message: string) => void,
  turns: Turns,
): Promise<Recovery> {
  const recovered: HeldProcess[] = [];
  const unrecorded: string[] = [];
  for (const [id, numbers] of listJournals(options.folder)) {
    try {
      const { disk, folder } = options;
      const found = await openInTurns({ disk, folder, id, numbers }, turns);
      if (found.kind === 'finished') recovered.push(finished(found, options));
      else if (found.kind === 'unfinished') recovered.push(lost(found, options, report));
      else {
        unrecorded.push(id);
        for (const file of found.files) file.remove();
      }
    } catch (error) {
      report(
        `journal ${id} cannot be opened: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
    if (turns.isOver()) await turns.next();
  }
  recovered.sort((a, b) => (a.closedAtMs ?? 0) - (b.closedAtMs ?? 0));
  return { recovered, unrecorded };
}

function finished(found: FinishedJournal, options: StarterOptions): HeldProcess {
  const { facts, ending } = found.closed as unknown as { facts: ProcessFacts; ending: Ending };
  const lostBytes = Number(found.closed['lostBytes'] ?? 0);
  const journal = new EndedJournal(found.segments, {
    seq: found.seq,
    offset: found.closed.bytes,
    lostBytes,
  });
  options.usage.add(journal.bytesOnDisk);
  return restored(facts, journal, ending, options);
}

function lost(
  found: UnfinishedJournal,
  options: StarterOptions,
  report: (message: string) => void,
): HeldProcess {
  const { disk, folder, usage, limits, clock, pool, earlierPid } = options;
  const keeper = earlierPid === undefined ? '' : ` (pid ${earlierPid})`;
  const facts = factsOf(found.started);
  if (found.tornBytes > 0)
    report(`journal ${found.id}: cut ${found.tornBytes} bytes of an unfinished write`);
  const { segments, seq, offset } = found;
  const journal = new Journal({
    place: { disk, folder, id: found.id, usage },
    limits,
    clock,
    pool,
    after: { segments, seq, offset, lostBytes: found.lostBytes },
  });
  const outcome: Outcome = found.exited?.outcome ?? {
    kind: 'lost',
    reason: `its keeper${keeper} died while it was running`,
  };
  if (!found.exited) journal.append({ kind: 'exited', body: { outcome } });
  const endMs = found.exitedWallMs ?? found.lastWallMs;
  const ending: Ending = {
    outcome,
    exitedAtMs: endMs,
    closedAtMs: clock.wallMs(),
    durationMs: Math.max(0, endMs - facts.startedAtMs),
    ...(found.tornBytes > 0 && { tornBytes: found.tornBytes }),
  };
  journal.appendClosed({ facts, ending });
  journal.flush();
  return restored(facts, journal, ending, options);
}

function restored(
  facts: ProcessFacts,
  journal: HeldProcess['journal'],
  ending: Ending,
  options: StarterOptions,
): HeldProcess {
  const process = new HeldProcess(facts, journal, settingOf(options));
  process.restore(ending);
  process.uncounted.forget();
  return process;
}

function settingOf(options: StarterOptions): ProcessDeps {
  const { clock, watcher, limits } = options;
  return {
    clock,
    watcher,
    writeIds: limits.writeIds,
    inputBytes: limits.inputBytes,
    recordInput: false,
  };
}
