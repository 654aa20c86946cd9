// process_list: the processes of this caller, running ones first.

import type { ProcessInfo } from '../../protocol/process.ts';
import { quiet } from './command-answer.ts';
import { statusOf } from './ending.ts';
import { reportAsFailure } from '../tool-errors.ts';
import type { ToolInput } from '../tool-inputs.ts';
import type { ToolOutput } from '../tool-outputs.ts';
import type { ToolCall, ToolContext } from '../tool-context.ts';

const DEFAULT_LIMIT = 10;
/** Running ones are listed beyond the limit, up to this. */
const MAX_LISTED = 100;
const MAX_COMMAND_LENGTH = 300;

export async function processList(
  context: ToolContext,
  { limit = DEFAULT_LIMIT }: ToolInput<'process_list'>,
  call: ToolCall,
): Promise<ToolOutput<'process_list'>> {
  const answer = await reportAsFailure('list processes', call.signal, async () => {
    const { processes, total } = await context.api.list({ limit: MAX_LISTED });
    const shown = processes.filter(({ outcome }, index) => index < limit || !outcome);
    return {
      processes: shown.map((process) => toListEntry(context, process)),
      ...(total > shown.length && { total }),
    };
  });
  return 'processes' in answer ? answer : { processes: [], ...answer };
}

function toListEntry(
  context: ToolContext,
  process: ProcessInfo,
): ToolOutput<'process_list'>['processes'][number] {
  const { id, cwd, labels, outcome, settled, startedAtMs, exitedAtMs, durationMs, bytes } = process;
  const intent = labels?.['intent'];
  return {
    id,
    command: shortened(process.command),
    workdir: cwd,
    background: labels?.['background'] === 'true',
    ...statusOf(process),
    started_at_unix: Math.floor(startedAtMs / 1000),
    ...(exitedAtMs !== undefined && { exited_at_unix: Math.floor(exitedAtMs / 1000) }),
    wall_duration_ms: Math.round(durationMs),
    ...(!outcome && quiet(context, process)),
    output_bytes: bytes.total,
    ...(outcome && !settled && { descendants_alive: true }),
    ...(intent !== undefined && { intent }),
  };
}

function shortened(command: string): string {
  const letters = Array.from(command);
  if (letters.length <= MAX_COMMAND_LENGTH) return command;
  return `${letters.slice(0, MAX_COMMAND_LENGTH - 1).join('')}…`;
}
