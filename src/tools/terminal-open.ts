// terminal_open and terminal_close: the life of a terminal.

import { randomId } from '../base/ids.ts';
import type { TerminalSpec } from '../client/terminal-api.ts';
import { commandOf } from './command-line.ts';
import { softly } from './tool-errors.ts';
import type { ToolInput } from './tool-inputs.ts';
import type { ToolOutput } from './tool-outputs.ts';
import type { ToolCall, ToolRoom, ToolSettings } from './tool-room.ts';

const DEFAULT_SIZE = { cols: 80, rows: 24 };
/** A terminal of its own has its own kind and size, whatever the caller's is. */
const ABOUT_CALLER = new Set(['TERM', 'COLUMNS', 'LINES']);

export async function terminalOpen(
  room: ToolRoom,
  input: ToolInput<'terminal_open'>,
  call: ToolCall,
): Promise<ToolOutput<'terminal_open'>> {
  return softly('open terminal', call.signal, async () => {
    const key = `tool-${call.callId ?? randomId()}`;
    const { process, attached } = await room.api.terminals.open(specOf(input, room.settings, key));
    room.leftRunning(process.id);
    const { terminal, size = DEFAULT_SIZE } = process;
    return {
      success: true,
      terminal_id: process.id,
      command: input.command ?? commandOf(process),
      ...(terminal?.marks !== undefined && { shell: terminal.marks }),
      cols: size.cols,
      rows: size.rows,
      ...(attached && { attached }),
    };
  });
}

function specOf(
  { command, workdir, cols, rows, model_intent: intent }: ToolInput<'terminal_open'>,
  { directory, environment, env = {}, browserSession }: ToolSettings,
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
    labels: {
      background: 'true',
      ...(intent !== undefined && intent !== '' && { intent: intent.slice(0, 200) }),
    },
  };
}

export async function terminalClose(
  room: ToolRoom,
  { terminal_id: id }: ToolInput<'terminal_close'>,
  call: ToolCall,
): Promise<ToolOutput<'terminal_close'>> {
  return softly('close terminal', call.signal, async () => {
    await room.api.terminals.close(id);
    return { success: true, message: `terminal ${id} and everything in it has ended` };
  });
}
