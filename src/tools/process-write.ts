// process_write: types into a process, and answers with what it says to that.

import type { Condition } from '../protocol/operations.ts';
import type { ProcessInfo } from '../protocol/process.ts';
import { printed } from './command-answer.ts';
import { standingOf } from './ending.ts';
import { joinNotes, notes, wantsInput } from './notes.ts';
import { readOutput } from './output-reading.ts';
import { durationOf, softly, ToolError } from './tool-errors.ts';
import type { ToolInput } from './tool-inputs.ts';
import type { ToolOutput } from './tool-outputs.ts';
import type { ToolCall, ToolRoom } from './tool-room.ts';
import { nowMs, snapshot, waitAtMost } from './waiting.ts';

const DEFAULT_WAIT_MS = 2000;
/** So long nothing more: the answer is complete, most likely. */
const SILENCE_MS = 200;
const CTRL_C = '\x03';

export async function processWrite(
  room: ToolRoom,
  input: ToolInput<'process_write'>,
  call: ToolCall,
): Promise<ToolOutput<'process_write'>> {
  const { process_id: id, text = '', eof = false, interrupt = false } = input;
  if (text === '' && !eof && !interrupt) throw new ToolError('text, eof or interrupt is required');
  const asked = durationOf('wait_timeout', input.wait_timeout, DEFAULT_WAIT_MS);
  const waitMs = Math.min(asked, call.maxWaitMs ?? Infinity);
  return softly('write to process', call.signal, async () => {
    const before = await room.api.get(id);
    if (interrupt) await pressInterrupt(room, before);
    const writeId = call.callId === undefined ? {} : { writeId: `tool-${call.callId}` };
    const written =
      text === '' && !eof
        ? { bytes: 0 }
        : await room.api.write({ id, data: Buffer.from(text), eof, ...writeId });
    await listen(room, before, waitMs, call);
    const process = await snapshot(room, id);
    const reading = await readOutput(room, process, { from: room.cursor.offset(id) });
    return {
      success: true,
      written_bytes: written.bytes,
      ...standingOf(process),
      ...printed(reading, process),
      ...joinNotes(!process.outcome && wantsInput(reading.text, false) && notes.openStdin),
    };
  });
}

/** A terminal makes a signal of the key; without one it is sent as such. */
async function pressInterrupt(room: ToolRoom, { id, streams }: ProcessInfo): Promise<void> {
  if (streams === 'pty') await room.api.write({ id, data: Buffer.from(CTRL_C) });
  else await room.api.signal({ id, signal: 'SIGINT', by: room.settings.by });
}

/** Until it printed something and fell silent, ended, or the time is over. */
async function listen(
  room: ToolRoom,
  before: ProcessInfo,
  timeoutMs: number,
  call: ToolCall,
): Promise<void> {
  const { id } = before;
  const untilMs = nowMs(room) + timeoutMs;
  const first = async (condition: Condition): Promise<void> => {
    const waits = [{ id, for: [condition, { kind: 'exit' as const }] }];
    await waitAtMost(room, { waits }, Math.max(0, untilMs - nowMs(room)), call);
  };
  for (;;) {
    const { bytes, outcome, seq } = await snapshot(room, id);
    if (outcome || nowMs(room) >= untilMs) return;
    if (bytes.total > before.bytes.total) return first({ kind: 'silence', forMs: SILENCE_MS });
    // What was typed is an event, too, but no answer.
    await first({ kind: 'growth', after: seq });
  }
}
