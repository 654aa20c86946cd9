// terminal_open and terminal_close.

import { randomId } from '../../base/ids.ts';
import type { TerminalSpec } from '../../client/terminal-api.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { readOutput } from '../text/output-reading.ts';
import { reportAsFailure } from '../tool-errors.ts';
import type { ToolInput } from '../tool-inputs.ts';
import type { ToolOutput } from '../tool-outputs.ts';
import type { ToolCall, ToolContext, ToolSettings } from '../tool-context.ts';
import { snapshot, waitAtMost } from '../process/wait-slices.ts';

const DEFAULT_SIZE = { cols: 80, rows: 24 };
/** How long a program has to show something or to fail. */
const FIRST_LOOK_MS = 300;
const LAST_LOOK_MS = 50;
/** The exit codes of a shell that could not run the program. */
const NOT_RUN: ReadonlySet<number> = new Set([126, 127]);
/** A new terminal has a type and size of its own. */
const ABOUT_CALLER = new Set(['TERM', 'COLUMNS', 'LINES']);

export async function terminalOpen(
  context: ToolContext,
  input: ToolInput<'terminal_open'>,
  call: ToolCall,
): Promise<ToolOutput<'terminal_open'>> {
  return reportAsFailure('open terminal', call.signal, async () => {
    const key = `tool-${call.callId ?? randomId()}`;
    const { process, attached } = await context.api.terminals.open(
      specOf(input, context.settings, key),
    );
    context.leftRunning(process.id);
    const { terminal, size = DEFAULT_SIZE } = process;
    const failure = input.command === undefined ? {} : await failureAtOnce(context, process, call);
    return {
      success: true,
      ...failure,
      terminal_id: process.id,
      command: input.command ?? process.command,
      ...(terminal?.marks !== undefined && { shell: terminal.marks }),
      cols: size.cols,
      rows: size.rows,
      ...(attached && { attached }),
    };
  });
}

/** A program that cannot be run fails about now, and its shell has printed why. */
async function failureAtOnce(
  context: ToolContext,
  { id, seq }: ProcessInfo,
  call: ToolCall,
): Promise<{ success?: false; error?: string }> {
  const exit = { kind: 'exit' as const };
  const sign = { kind: 'growth' as const, after: seq };
  await waitAtMost(
    context,
    { waits: [{ id, for: [exit, sign] }] },
    { timeoutMs: FIRST_LOOK_MS },
    call,
  );
  await waitAtMost(context, { waits: [{ id, for: [exit] }] }, { timeoutMs: LAST_LOOK_MS }, call);
  const now = await snapshot(context, id);
  if (now.outcome?.kind !== 'exit' || !NOT_RUN.has(now.outcome.code)) return {};
  const { text } = await readOutput(context, now, { peek: true });
  return { success: false, error: `open terminal: ${text.trim()}` };
}

function specOf(
  { command, workdir, cols, rows, model_intent: intent }: ToolInput<'terminal_open'>,
  { directory, environment, env = {}, browserSession, terminalIdleMs }: ToolSettings,
  key: string,
): TerminalSpec {
  const cwd = workdir ?? directory;
  const kept = Object.entries(env).filter(([name]) => !ABOUT_CALLER.has(name));
  return {
    ...(command !== undefined && { argv: ['sh', '-c', command] }),
    ...(cwd !== undefined && { cwd }),
    ...(environment && { environment }),
    env: {
      ...Object.fromEntries(kept),
      ...(browserSession !== undefined && { AGENT_BROWSER_SESSION: browserSession }),
    },
    size: { cols: cols ?? DEFAULT_SIZE.cols, rows: rows ?? DEFAULT_SIZE.rows },
    key,
    idleTimeoutMs: terminalIdleMs,
    labels: {
      background: 'true',
      ...(intent !== undefined && intent !== '' && { intent: intent.slice(0, 200) }),
    },
  };
}

export async function terminalClose(
  context: ToolContext,
  { terminal_id: id }: ToolInput<'terminal_close'>,
  call: ToolCall,
): Promise<ToolOutput<'terminal_close'>> {
  return reportAsFailure('close terminal', call.signal, async () => {
    await context.api.terminals.close(id);
    return { success: true, message: `terminal ${id} was closed; everything in it was stopped` };
  });
}
