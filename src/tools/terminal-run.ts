// terminal_run: types a command at the prompt of a terminal's shell and answers with its own output and exit code.

import { randomId } from '../base/ids.ts';
import type { TerminalRun } from '../client/terminal-api.ts';
import { UNTRUSTED } from './command-answer.ts';
import { joinNotes, notes } from './notes.ts';
import { readOutput } from './output-reading.ts';
import { durationOf, softly } from './tool-errors.ts';
import type { ToolInput } from './tool-inputs.ts';
import type { ToolOutput } from './tool-outputs.ts';
import type { ToolCall, ToolRoom } from './tool-room.ts';
import { givenUp, snapshot, telling } from './waiting.ts';

type Answer = ToolOutput<'terminal_run'>;

const DEFAULT_TIMEOUT_MS = 10_000;

export async function terminalRun(
  room: ToolRoom,
  { terminal_id: id, command, timeout }: ToolInput<'terminal_run'>,
  call: ToolCall,
): Promise<Answer> {
  const asked = durationOf('timeout', timeout, DEFAULT_TIMEOUT_MS);
  const timeoutMs = Math.min(asked, call.maxWaitMs ?? Infinity);
  return softly('run in terminal', call.signal, async () => {
    // Under a name a call that is made again waits for the run of the first.
    const run = `tool-${call.callId ?? randomId()}`;
    const params = { id, command, run, timeoutMs: Math.ceil(timeoutMs) };
    const result = await telling(room, timeoutMs, call, () =>
      room.api.terminals.run(params, givenUp(call)),
    );
    const { exitCode, cwd, timedOut, ended } = result;
    return {
      success: exitCode === 0,
      ...(await printedBy(room, id, result)),
      ...(exitCode !== undefined && { exit_code: exitCode }),
      ...(cwd !== undefined && { workdir: cwd }),
      ...(timedOut && { timed_out: true }),
      ...(ended && { ended: true }),
      wall_duration_ms: result.durationMs,
      ...advice(result, timeoutMs < asked),
    };
  });
}

async function printedBy(
  room: ToolRoom,
  id: string,
  { outputFrom: from, outputTo: to }: TerminalRun,
): Promise<Pick<Answer, 'output' | 'output_is' | 'truncated'>> {
  if (from === undefined || to === undefined || from === to) return {};
  const process = await snapshot(room, id);
  const { text, truncated } = await readOutput(room, process, { from, to, peek: true });
  return {
    ...(text !== '' && { output: text, output_is: UNTRUSTED }),
    ...(truncated && { truncated: { ...truncated } }),
  };
}

function advice(
  { completed, timedOut, incomplete, ended }: TerminalRun,
  capped: boolean,
): { note?: string } {
  if (completed || ended) return {};
  return joinNotes(
    timedOut && capped && notes.capped,
    incomplete && notes.incomplete,
    timedOut && !incomplete && notes.runGoesOn,
    !timedOut && notes.untold,
  );
}
