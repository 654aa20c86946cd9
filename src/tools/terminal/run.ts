// terminal_run: types a command at the prompt of a terminal's shell and returns its output and exit code.

import { randomId } from '../../base/ids.ts';
import type { TerminalRun } from '../../client/terminal-api.ts';
import { UNTRUSTED } from '../process/command-answer.ts';
import { joinNotes, notes } from '../notes.ts';
import { shown } from './look.ts';
import { readOutput } from '../text/output-reading.ts';
import { durationOf, reportAsFailure } from '../tool-errors.ts';
import type { ToolInput } from '../tool-inputs.ts';
import type { ToolOutput } from '../tool-outputs.ts';
import type { ToolCall, ToolContext } from '../tool-context.ts';
import { abandonSignal, withProgress } from '../process/wait-slices.ts';

type Answer = ToolOutput<'terminal_run'>;

const DEFAULT_TIMEOUT_MS = 10_000;

export async function terminalRun(
  context: ToolContext,
  { terminal_id: id, command, timeout }: ToolInput<'terminal_run'>,
  call: ToolCall,
): Promise<Answer> {
  const requestedMs = durationOf('timeout', timeout, DEFAULT_TIMEOUT_MS);
  const timeoutMs = Math.min(requestedMs, call.maxWaitMs ?? Infinity);
  return reportAsFailure('run in terminal', call.signal, async () => {
    // With a name, a repeated call waits for the run of the first.
    const run = `tool-${call.callId ?? randomId()}`;
    const params = { id, command, run, timeoutMs: Math.ceil(timeoutMs) };
    const result = await withProgress(context, timeoutMs, call, () =>
      context.api.terminals.run(params, abandonSignal(call)),
    );
    const { exitCode, cwd, timedOut, ended, completed } = result;
    return {
      success: exitCode === 0,
      ...(completed || ended
        ? await printedBy(context, id, result)
        : await whatItShows(context, id)),
      ...(exitCode !== undefined && { exit_code: exitCode }),
      ...(cwd !== undefined && { workdir: cwd }),
      ...(timedOut && { timed_out: true }),
      ...(ended && { ended: true }),
      wall_duration_ms: result.durationMs,
      ...advice(result, timeoutMs < requestedMs),
    };
  });
}

async function printedBy(
  context: ToolContext,
  id: string,
  { outputFrom: from, outputTo: to }: TerminalRun,
): Promise<Pick<Answer, 'output' | 'output_is' | 'truncated'>> {
  if (from === undefined || to === undefined || from === to) return {};
  const process = { id, bytes: { total: to } };
  const { text, truncated } = await readOutput(context, process, { from, peek: true });
  return {
    ...(text !== '' && { output: text, output_is: UNTRUSTED }),
    ...(truncated && { truncated: { ...truncated } }),
  };
}

/** While the command runs, its output is not known to be its own: the screen tells what to do next. */
async function whatItShows(
  context: ToolContext,
  id: string,
): Promise<Pick<Answer, 'screen' | 'output_is' | 'omitted_lines'>> {
  const view = await context.api.terminals.snapshot(id, {});
  const { screen, output_is, omitted_lines } = await shown(context, id, view);
  return { screen, output_is, ...(omitted_lines !== undefined && { omitted_lines }) };
}

function advice(result: TerminalRun, capped: boolean): { note?: string } {
  const { typed, completed, timedOut, incomplete, ended, entered } = result;
  if (ended) return {};
  if (!typed) return joinNotes(notes.notTyped(result.busyWith || 'something else'));
  return joinNotes(
    result.cleared && notes.cleared,
    result.executed === false && notes.notExecuted,
    entered !== undefined && notes.entered(entered),
    !completed && timedOut && capped && notes.capped,
    incomplete && notes.incomplete,
    !completed && timedOut && !incomplete && notes.runGoesOn,
    !completed && !timedOut && !incomplete && notes.completionUnknown,
  );
}
