// process_list: the processes of this caller, running ones first.

import type { ProcessInfo } from '../protocol/process.ts';
import { quiet } from './command-answer.ts';
import { commandOf } from './command-line.ts';
import { standingOf } from './ending.ts';
import { softly } from './tool-errors.ts';
import type { ToolInput } from './tool-inputs.ts';
import type { ToolOutput } from './tool-outputs.ts';
import type { ToolCall, ToolRoom } from './tool-room.ts';

const DEFAULT_LIMIT = 10;
/** Running ones are never hidden by the limit, up to this. */
const MOST = 100;
const LONGEST_COMMAND = 300;

export async function processList(
  room: ToolRoom,
  { limit = DEFAULT_LIMIT }: ToolInput<'process_list'>,
  call: ToolCall,
): Promise<ToolOutput<'process_list'>> {
  const answer = await softly('list processes', call.signal, async () => {
    const { processes, total } = await room.api.list({ limit: MOST });
    const shown = processes.filter(({ outcome }, index) => index < limit || !outcome);
    return {
      processes: shown.map((process) => listed(room, process)),
      ...(total > shown.length && { total }),
    };
  });
  return 'processes' in answer ? answer : { processes: [], ...answer };
}

function listed(
  room: ToolRoom,
  process: ProcessInfo,
): ToolOutput<'process_list'>['processes'][number] {
  const { id, cwd, labels, outcome, settled, startedAtMs, exitedAtMs, durationMs, bytes } = process;
  const intent = labels?.['intent'];
  return {
    id,
    command: shortened(commandOf(process)),
    workdir: cwd,
    background: labels?.['background'] === 'true',
    ...standingOf(process),
    started_at_unix: Math.floor(startedAtMs / 1000),
    ...(exitedAtMs !== undefined && { exited_at_unix: Math.floor(exitedAtMs / 1000) }),
    wall_duration_ms: Math.round(durationMs),
    ...(!outcome && quiet(room, process)),
    output_bytes: bytes.total,
    ...(outcome && !settled && { descendants_alive: true }),
    ...(intent !== undefined && { intent }),
  };
}

function shortened(command: string): string {
  const letters = Array.from(command);
  if (letters.length <= LONGEST_COMMAND) return command;
  return `${letters.slice(0, LONGEST_COMMAND - 1).join('')}…`;
}
