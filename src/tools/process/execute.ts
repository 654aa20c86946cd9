// execute: starts a command and waits for its exit, up to a timeout that ends only the wait.

import { randomId } from '../../base/ids.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { StartSpec } from '../../protocol/operations.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { startSpec } from './command-line.ts';
import {
  CLOSE_MS,
  commandAnswer,
  SETTLE_MS,
  settled,
  waitForExit,
  type CommandAnswer,
} from './command-answer.ts';
import { formatDuration } from '../duration.ts';
import { endProcess } from './interruption.ts';
import { joinNotes, notes } from '../notes.ts';
import { readShell } from '../shell/ampersand.ts';
import { durationOf } from '../tool-errors.ts';
import type { ToolInput } from '../tool-inputs.ts';
import type { ToolCall, ToolContext } from '../tool-context.ts';
import {
  abandonSignal,
  MAX_REQUEST_MS,
  nowMs,
  withProgress,
  TIMER_SLACK_MS,
} from './wait-slices.ts';

const DEFAULT_TIMEOUT_MS = 10_000;
/** A command that cannot work fails about now, and is reported at once. */
const FIRST_LOOK_MS = 300;
const NO_SHELL =
  'There is no POSIX shell on the PATH of the host. Install one (on Windows Git Bash, MSYS2 or WSL, see https://learn.microsoft.com/windows/wsl/install) and start the host again.';

export async function execute(
  context: ToolContext,
  input: ToolInput<'execute'>,
  call: ToolCall,
): Promise<CommandAnswer> {
  const reading = readShell(input.command);
  const background = input.run_in_background === true || reading.promoted !== undefined;
  // With an explicit run_in_background the command stays unchanged.
  const command =
    input.run_in_background === true ? input.command : (reading.promoted ?? input.command);
  const timeoutMs = timeoutOf(input);
  const key = `tool-${call.callId ?? randomId()}`;
  const spec = startSpec(input, context.settings, { command, key, background });
  const target = { id: undefined as string | undefined, key };
  const waitMs = background ? FIRST_LOOK_MS : Math.min(timeoutMs, call.maxWaitMs ?? Infinity);
  try {
    const started = await startAndWait(context, spec, waitMs, call);
    const { process, attached } = started;
    target.id = process.id;
    const promoted = background && input.run_in_background !== true;
    const answer = background
      ? await inBackground(context, process, promoted)
      : await inForeground(context, started, { input, timeoutMs, call });
    return attached ? { ...answer, attached } : answer;
  } catch (error) {
    if (call.interrupt?.aborted === true) return interrupted(context, target, background);
    if (!(error instanceof HoldfastError) || call.signal?.aborted === true) throw error;
    return { success: false, wall_duration_ms: 0, ...problemOf(error, target.id, background) };
  }
}

/** How long the caller of a command in the foreground waits. */
export function timeoutOf({ timeout }: Pick<ToolInput<'execute'>, 'timeout'>): number {
  return durationOf('timeout', timeout, DEFAULT_TIMEOUT_MS);
}

interface Started {
  readonly process: ProcessInfo;
  readonly attached: boolean;
  readonly startMs: number;
}

/**
 * One request for a command that exits in time: the answer to the start has its outcome and says whether descendants
 * are left.
 */
async function startAndWait(
  context: ToolContext,
  spec: StartSpec,
  waitMs: number,
  call: ToolCall,
): Promise<Started> {
  const startMs = nowMs(context);
  const wait = { waitMs: Math.ceil(Math.min(waitMs, MAX_REQUEST_MS)), settleMs: SETTLE_MS };
  const started = await withProgress(context, waitMs, call, () =>
    startOrInterrupt(context.api.start({ ...spec, ...wait }, abandonSignal(call)), call),
  );
  const { process, attached } = started;
  // A keeper of an older build answers at the exit, without waiting for descendants.
  const leftMs = nowMs(context) - startMs - process.durationMs;
  const early = attached || leftMs < CLOSE_MS - TIMER_SLACK_MS;
  return { process: early ? await settled(context, process) : process, attached, startMs };
}

/** After an interrupt the answer to the start is not awaited: the process is found by its key. */
async function startOrInterrupt<T>(starting: Promise<T>, { interrupt }: ToolCall): Promise<T> {
  if (!interrupt) return starting;
  starting.catch(() => undefined);
  let stop = (): void => undefined;
  const stopped = new Promise<never>((_, reject) => {
    stop = () => reject(new HoldfastError('aborted', 'The caller was interrupted.'));
    if (interrupt.aborted) stop();
    interrupt.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([starting, stopped]);
  } finally {
    interrupt.removeEventListener('abort', stop);
  }
}

async function inBackground(
  context: ToolContext,
  process: ProcessInfo,
  promoted: boolean,
): Promise<CommandAnswer> {
  context.leftRunning(process.id);
  if (!process.outcome) {
    return {
      success: true,
      running: true,
      background_process_id: process.id,
      backgrounded: true,
      wall_duration_ms: 0,
      ...joinNotes(promoted && notes.promoted),
    };
  }
  const { process_id: _same, ...answer } = await commandAnswer(context, process);
  const { note } = joinNotes(promoted && notes.promoted, notes.endedAtOnce, answer.note);
  return {
    ...answer,
    background_process_id: process.id,
    backgrounded: true,
    ...(note !== undefined && { note }),
  };
}

async function inForeground(
  context: ToolContext,
  { process, attached, startMs }: Started,
  request: { input: ToolInput<'execute'>; timeoutMs: number; call: ToolCall },
): Promise<CommandAnswer> {
  const { input, call } = request;
  const elapsedMs = nowMs(context) - startMs;
  // A repeated call waits only for the rest of the first call's timeout.
  const ageMs = attached ? Math.max(0, process.durationMs - elapsedMs) : 0;
  const leftMs = Math.max(0, request.timeoutMs - ageMs);
  const waitMs = Math.min(leftMs, call.maxWaitMs ?? Infinity);
  let now = process;
  if (!now.outcome && elapsedMs < waitMs - TIMER_SLACK_MS) {
    const ended = await waitForExit(context, process.id, { timeoutMs: waitMs, startMs }, call);
    if (ended.answer) return ended.answer;
    now = ended.process;
  }
  if (!now.outcome) context.leftRunning(process.id);
  const capped = waitMs < leftMs;
  return foregroundAnswer(context, now, {
    command: input.command,
    waitedMs: capped ? waitMs : request.timeoutMs,
    capped,
  });
}

/** Of a process that has ended, or whose caller waits no longer. */
export async function foregroundAnswer(
  context: ToolContext,
  process: ProcessInfo,
  waited: { readonly command: string; readonly waitedMs: number; readonly capped: boolean },
): Promise<CommandAnswer> {
  const { command, waitedMs, capped } = waited;
  const current = await commandAnswer(context, process, { command });
  if (process.outcome) return current;
  return {
    ...current,
    success: false,
    exit_code: -1,
    error: `command timed out after ${formatDuration(waitedMs)} and is still running`,
    ...joinNotes(capped && notes.capped, notes.goesOn, current.note),
  };
}

/** A person stopped the agent: the process that it waited for is killed, processes in the background continue. */
async function interrupted(
  context: ToolContext,
  target: { id: string | undefined; key: string },
  background: boolean,
): Promise<CommandAnswer> {
  if (background) {
    const known = target.id !== undefined && { background_process_id: target.id };
    return { success: false, error: 'interrupted; it goes on', wall_duration_ms: 0, ...known };
  }
  const ended = await endProcess(context, target);
  return {
    success: false,
    error: ended ? 'interrupted; the process was ended' : 'interrupted; it may still be running',
    wall_duration_ms: 0,
    ...(target.id !== undefined && { process_id: target.id }),
  };
}

function problemOf(
  error: HoldfastError,
  id: string | undefined,
  background: boolean,
): { error: string; background_process_id?: string } {
  if (id !== undefined) {
    const advice = 'use process_output with this id to try again';
    return { error: `get process output: ${error.message}; ${advice}`, background_process_id: id };
  }
  const problem = `start ${background ? 'background ' : ''}process: ${error.message}`;
  const lost = error.code === 'keeper_unreachable' || error.code === 'not_answering';
  if (lost) return { error: `${problem} It may be running: process_list shows whether it is.` };
  const noShell = error.code === 'program_not_found' && error.details['program'] === 'sh';
  return { error: noShell ? `${problem} ${NO_SHELL}` : problem };
}
