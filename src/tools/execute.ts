// execute: starts a command and waits for its end, within a time that ends only the waiting.

import { randomId } from '../base/ids.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { ProcessInfo } from '../protocol/process.ts';
import { startSpec } from './command-line.ts';
import { commandAnswer, untilEnded, type CommandAnswer } from './command-answer.ts';
import { durationWords } from './duration.ts';
import { endProcess } from './interruption.ts';
import { joinNotes, notes } from './notes.ts';
import { readShell } from './shell-ampersand.ts';
import { durationOf } from './tool-errors.ts';
import type { ToolInput } from './tool-inputs.ts';
import type { ToolCall, ToolRoom } from './tool-room.ts';
import { snapshot, waitAtMost } from './waiting.ts';

const DEFAULT_TIMEOUT_MS = 10_000;
/** A command that cannot work ends about now; it is told at once. */
const FIRST_LOOK_MS = 300;
const NO_SHELL =
  'There is no POSIX shell on the PATH of the host. Install one (on Windows Git Bash, MSYS2 or WSL, see https://learn.microsoft.com/windows/wsl/install) and start the host again.';

export async function execute(
  room: ToolRoom,
  input: ToolInput<'execute'>,
  call: ToolCall,
): Promise<CommandAnswer> {
  const reading = readShell(input.command);
  const background = input.run_in_background === true || reading.promoted !== undefined;
  // Asked for in so many words, the command is left as it is.
  const command =
    input.run_in_background === true ? input.command : (reading.promoted ?? input.command);
  const timeoutMs = durationOf('timeout', input.timeout, DEFAULT_TIMEOUT_MS);
  const key = `tool-${call.callId ?? randomId()}`;
  const spec = startSpec(input, room.settings, { command, key, background });
  const target = { id: undefined as string | undefined, key };
  try {
    const started = await startOrInterrupt(room.api.start(spec), call);
    target.id = started.process.id;
    const { process, attached } = started;
    const answer = background
      ? await inBackground(room, process, call)
      : await inForeground(room, process, { input, timeoutMs, attached, call });
    return attached ? { ...answer, attached } : answer;
  } catch (error) {
    if (call.interrupt?.aborted === true) return interrupted(room, target, background);
    if (!(error instanceof HoldfastError) || call.signal?.aborted === true) throw error;
    return { success: false, wall_duration_ms: 0, ...problemOf(error, target.id, background) };
  }
}

/** The answer to a start may be lost with the interest in it: what was started is found by its key. */
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
  room: ToolRoom,
  process: ProcessInfo,
  call: ToolCall,
): Promise<CommandAnswer> {
  room.leftRunning(process.id);
  const waits = [{ id: process.id, for: [{ kind: 'exit' as const }] }];
  await waitAtMost(room, { waits }, FIRST_LOOK_MS, call);
  const now = await snapshot(room, process.id);
  if (!now.outcome) {
    return {
      success: true,
      running: true,
      background_process_id: process.id,
      backgrounded: true,
      wall_duration_ms: 0,
    };
  }
  const { process_id: _same, ...answer } = await commandAnswer(room, now);
  const { note } = joinNotes(notes.endedAtOnce, answer.note);
  return {
    ...answer,
    background_process_id: process.id,
    backgrounded: true,
    ...(note !== undefined && { note }),
  };
}

async function inForeground(
  room: ToolRoom,
  process: ProcessInfo,
  asked: {
    input: ToolInput<'execute'>;
    timeoutMs: number;
    attached: boolean;
    call: ToolCall;
  },
): Promise<CommandAnswer> {
  const { input, attached, call } = asked;
  // A replay waits out what is left of the time that the first call had.
  const leftMs = Math.max(0, asked.timeoutMs - (attached ? process.durationMs : 0));
  const waitMs = Math.min(leftMs, call.maxWaitMs ?? Infinity);
  const { process: now, answer } = await untilEnded(room, process.id, waitMs, call);
  if (answer) return answer;
  const told = await commandAnswer(room, now, { command: input.command });
  if (now.outcome) return told;
  room.leftRunning(process.id);
  const capped = waitMs < leftMs;
  return {
    ...told,
    success: false,
    exit_code: -1,
    error: `command timed out after ${durationWords(capped ? waitMs : asked.timeoutMs)} and is still running`,
    ...joinNotes(capped && notes.capped, notes.goesOn, told.note),
  };
}

/** A person stopped the agent: what it was waiting for ends, what it left in the background goes on. */
async function interrupted(
  room: ToolRoom,
  target: { id: string | undefined; key: string },
  background: boolean,
): Promise<CommandAnswer> {
  if (background) {
    const known = target.id !== undefined && { background_process_id: target.id };
    return { success: false, error: 'interrupted; it goes on', wall_duration_ms: 0, ...known };
  }
  const ended = await endProcess(room, target);
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
  const noShell = error.code === 'program_not_found' && error.details['program'] === 'sh';
  return { error: noShell ? `${problem} ${NO_SHELL}` : problem };
}
