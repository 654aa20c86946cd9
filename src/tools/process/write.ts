// process_write: writes to a process and returns what it prints in reply.

import type { Condition } from '../../protocol/operations.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { outputFields } from './command-answer.ts';
import { statusOf } from './ending.ts';
import { joinNotes, notes, asksForInput } from '../notes.ts';
import { readOutput } from '../text/output-reading.ts';
import { durationOf, reportAsFailure, ToolError } from '../tool-errors.ts';
import type { ToolInput } from '../tool-inputs.ts';
import type { ToolOutput } from '../tool-outputs.ts';
import type { ToolCall, ToolContext } from '../tool-context.ts';
import { nowMs, snapshot, waitAtMost } from './wait-slices.ts';

const DEFAULT_WAIT_MS = 2000;
/** After this long without output, the reply is probably complete. */
const SILENCE_MS = 200;
const CTRL_C = '\x03';

export async function processWrite(
  context: ToolContext,
  input: ToolInput<'process_write'>,
  call: ToolCall,
): Promise<ToolOutput<'process_write'>> {
  const { process_id: id, text = '', eof = false, interrupt = false } = input;
  if (text === '' && !eof && !interrupt) throw new ToolError('text, eof or interrupt is required');
  const requestedMs = durationOf('wait_timeout', input.wait_timeout, DEFAULT_WAIT_MS);
  const waitMs = Math.min(requestedMs, call.maxWaitMs ?? Infinity);
  return reportAsFailure('write to process', call.signal, async () => {
    const before = await context.api.get(id);
    if (interrupt) await pressInterrupt(context, before);
    const writeId = call.callId === undefined ? {} : { writeId: `tool-${call.callId}` };
    const written =
      text === '' && !eof
        ? { bytes: 0 }
        : await context.api.write({ id, data: Buffer.from(text), eof, ...writeId });
    await listen(context, before, waitMs, call);
    const process = await snapshot(context, id);
    const reading = await readOutput(context, process, { from: context.cursor.offset(id) });
    return {
      success: true,
      written_bytes: written.bytes,
      ...statusOf(process),
      ...outputFields(reading, process),
      ...joinNotes(!process.outcome && asksForInput(reading.text, false) && notes.openStdin),
    };
  });
}

/** A terminal turns the key into a signal; without a terminal the signal is sent. */
async function pressInterrupt(context: ToolContext, { id, streams }: ProcessInfo): Promise<void> {
  if (streams === 'pty') await context.api.write({ id, data: Buffer.from(CTRL_C) });
  else await context.api.signal({ id, signal: 'SIGINT', by: context.settings.by });
}

/** Until it has printed something and stopped, exited, or the time passed. */
async function listen(
  context: ToolContext,
  before: ProcessInfo,
  timeoutMs: number,
  call: ToolCall,
): Promise<void> {
  const { id } = before;
  const untilMs = nowMs(context) + timeoutMs;
  const first = async (condition: Condition): Promise<void> => {
    const waits = [{ id, for: [condition, { kind: 'exit' as const }] }];
    const timeoutMs = Math.max(0, untilMs - nowMs(context));
    await waitAtMost(context, { waits }, { timeoutMs }, call);
  };
  for (;;) {
    const { bytes, outcome, seq } = await snapshot(context, id);
    if (outcome || nowMs(context) >= untilMs) return;
    if (bytes.total > before.bytes.total) return first({ kind: 'silence', forMs: SILENCE_MS });
    // The input is an event too, but not a reply.
    await first({ kind: 'growth', after: seq });
  }
}
