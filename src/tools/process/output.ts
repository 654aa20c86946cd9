// process_output: all output so far, only new output, or output from a byte on.

import type { ProcessInfo } from '../../protocol/process.ts';
import { commandAnswer, quiet, waitForExit, type CommandAnswer } from './command-answer.ts';
import { joinNotes, notes } from '../notes.ts';
import { durationOf } from '../tool-errors.ts';
import type { ToolInput } from '../tool-inputs.ts';
import type { ToolCall, ToolContext } from '../tool-context.ts';

const DEFAULT_WAIT_MS = 10_000;
/** From this many reads in a row without new output, the model is polling. */
const POLLING_READS = 2;

export async function processOutput(
  context: ToolContext,
  input: ToolInput<'process_output'>,
  call: ToolCall,
): Promise<CommandAnswer> {
  const { process_id: id, wait_timeout: wait, offset, max_bytes: maxBytes } = input;
  const requestedMs = durationOf('wait_timeout', wait, offset === undefined ? DEFAULT_WAIT_MS : 0);
  const waitMs = Math.min(requestedMs, call.maxWaitMs ?? Infinity);
  const from = offset ?? (input.new_only === true ? context.cursor.offset(id) : 0);
  const { process, answer } = await waitForExit(context, id, { timeoutMs: waitMs }, call);
  if (answer) return answer;
  const seen = context.cursor.offset(id);
  const to = offset === undefined ? {} : { to: offset + pageBytes(context, maxBytes) };
  const current = await commandAnswer(context, process, { part: { from, maxBytes, ...to } });
  return {
    ...current,
    ...nextPage(process, offset, to.to),
    command: process.command,
    ...quiet(context, process),
    ...joinNotes(
      ...runningNotes(context, process, { seen, capped: waitMs < requestedMs }),
      current.note,
    ),
  };
}

function pageBytes({ settings }: ToolContext, maxBytes = settings.maxOutputBytes): number {
  return Math.min(maxBytes, settings.maxOutputBytes);
}

/** A page that is not the last says where the next begins, even after the exit. */
function nextPage(
  { bytes }: ProcessInfo,
  offset: number | undefined,
  to: number | undefined,
): { next_offset?: number } {
  return offset !== undefined && to !== undefined && to < bytes.total ? { next_offset: to } : {};
}

function runningNotes(
  { cursor }: ToolContext,
  { id, outcome }: ProcessInfo,
  { seen, capped }: { seen: number; capped: boolean },
): (string | false)[] {
  if (outcome) return [];
  const polling = cursor.emptyReads(id) >= POLLING_READS && cursor.offset(id) === seen;
  return [notes.running, capped && notes.capped, polling && notes.polling];
}
