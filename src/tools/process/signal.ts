// process_signal: ends a process and everything it started, and lists survivors.

import { HoldfastError } from '../../protocol/errors.ts';
import type { SignalResult } from '../../protocol/host-api.ts';
import { statusOf } from './ending.ts';
import { reportAsFailure } from '../tool-errors.ts';
import type { ToolInput } from '../tool-inputs.ts';
import type { ToolOutput } from '../tool-outputs.ts';
import type { ToolCall, ToolContext } from '../tool-context.ts';
import { snapshot } from './wait-slices.ts';

export async function processSignal(
  context: ToolContext,
  { process_id: id, signal }: ToolInput<'process_signal'>,
  call: ToolCall,
): Promise<ToolOutput<'process_signal'>> {
  return reportAsFailure('signal process', call.signal, async () => {
    const { by } = context.settings;
    let result: SignalResult;
    try {
      result = await context.api.signal({ id, signal, by });
    } catch (error) {
      if (!(error instanceof HoldfastError) || error.code !== 'not_running') throw error;
      const status = statusOf(await snapshot(context, id));
      return { success: true, message: `process ${id} had already exited`, ...status };
    }
    const { survivors, escalated, refused = [] } = result;
    const unreached = refused.length > 0 ? `; ${refused.length} could not be signalled` : '';
    const sent = `signal "${signal}" sent to process ${id}${unreached}`;
    return {
      success: true,
      message: escalated ? `${sent}; it did not exit and was killed` : sent,
      ...statusOf(await snapshot(context, id)),
      ...(survivors.length > 0 && {
        survivors: survivors.map(({ pid, command }) => ({ pid, command })),
      }),
    };
  });
}
