// process_wait: one call that returns when something happens, instead of polling.

import type { Met } from '../../protocol/host-api.ts';
import type { Condition } from '../../protocol/operations.ts';
import { outputFields, quiet } from './command-answer.ts';
import { statusOf } from './ending.ts';
import { joinNotes, notes } from '../notes.ts';
import { fetchCall, readOutput } from '../text/output-reading.ts';
import { durationOf, reportAsFailure } from '../tool-errors.ts';
import type { ToolInput } from '../tool-inputs.ts';
import type { ToolOutput } from '../tool-outputs.ts';
import type { ToolCall, ToolContext } from '../tool-context.ts';
import { nowMs, snapshot, waitAtMost } from './wait-slices.ts';

type WaitAnswer = ToolOutput<'process_wait'>;
type Waited = NonNullable<WaitAnswer['processes']>[number];

const DEFAULT_WAIT_MS = 30_000;

export async function processWait(
  context: ToolContext,
  input: ToolInput<'process_wait'>,
  call: ToolCall,
): Promise<WaitAnswer> {
  const conditions = conditionsOf(input);
  const requestedMs = durationOf('wait_timeout', input.wait_timeout, DEFAULT_WAIT_MS);
  const waitMs = Math.min(requestedMs, call.maxWaitMs ?? Infinity);
  const ids = Array.from(new Set(input.process_ids));
  return reportAsFailure('wait for process', call.signal, async () => {
    const startMs = nowMs(context);
    const waits = ids.map((id) => ({ id, for: conditions }));
    const { mode = 'first' } = input;
    const { met } = await waitAtMost(context, { waits, mode }, { timeoutMs: waitMs }, call);
    const timedOut = met.length === 0 || (mode === 'all' && met.length < ids.length);
    const shown = ids.filter((id) => timedOut || met.some((each) => each.id === id));
    const share = Math.floor(context.settings.maxOutputBytes / shown.length);
    const processes = await inTurn(shown, (id) =>
      waited(context, id, { met: met.find((each) => each.id === id), maxBytes: share }),
    );
    const capped = timedOut && waitMs < requestedMs;
    const cut = processes.find(({ truncated }) => truncated);
    return {
      success: !timedOut,
      ...(timedOut && { timed_out: true }),
      waited_ms: Math.round(nowMs(context) - startMs),
      processes,
      ...joinNotes(
        capped && notes.capped,
        timedOut && notes.running,
        cut?.truncated && notes.shortened(fetchCall(cut.process_id, cut.truncated.omitted_offset)),
      ),
    };
  });
}

/** The exit of a process always ends the wait for it. */
function conditionsOf({ text, pattern, port, silence }: ToolInput<'process_wait'>): Condition[] {
  const forMs = silence === undefined ? undefined : durationOf('silence', silence, 0);
  const wanted: Condition[] = [
    ...(text === undefined ? [] : [{ kind: 'text' as const, text }]),
    ...(pattern === undefined ? [] : [{ kind: 'pattern' as const, pattern }]),
    ...(port === undefined ? [] : [{ kind: 'port' as const, port }]),
    ...(forMs === undefined ? [] : [{ kind: 'silence' as const, forMs: Math.max(1, forMs) }]),
  ];
  return [...wanted, { kind: 'exit' }];
}

/** With the output that the caller has not read. */
async function waited(
  context: ToolContext,
  id: string,
  { met, maxBytes }: { met: Met | undefined; maxBytes: number },
): Promise<Waited> {
  const process = await snapshot(context, id);
  const reading = await readOutput(context, process, { from: context.cursor.offset(id), maxBytes });
  return {
    process_id: id,
    ...(met && (met.met ? { met: met.kind } : { impossible: true })),
    ...(met?.line !== undefined && { line: met.line }),
    ...(met?.port !== undefined && { port: met.port }),
    ...statusOf(process),
    ...outputFields(reading, process),
    wall_duration_ms: Math.round(process.durationMs),
    ...(!process.outcome && quiet(context, process)),
  };
}

async function inTurn<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const item of items) results.push(await work(item));
  return results;
}
