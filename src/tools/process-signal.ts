// process_signal: ends a process and everything it started, and says what survived.

import { softly } from './tool-errors.ts';
import type { ToolInput } from './tool-inputs.ts';
import type { ToolOutput } from './tool-outputs.ts';
import type { ToolCall, ToolRoom } from './tool-room.ts';

export async function processSignal(
  room: ToolRoom,
  { process_id: id, signal }: ToolInput<'process_signal'>,
  call: ToolCall,
): Promise<ToolOutput<'process_signal'>> {
  return softly('signal process', call.signal, async () => {
    const { by } = room.settings;
    const { survivors, escalated } = await room.api.signal({ id, signal, by });
    const sent = `signal "${signal}" sent to process ${id}`;
    return {
      success: true,
      message: escalated ? `${sent}; it did not heed it and was killed` : sent,
      ...(survivors.length > 0 && {
        survivors: survivors.map(({ pid, command }) => ({ pid, command })),
      }),
    };
  });
}
