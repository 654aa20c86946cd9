// Kills a process for a caller that is already gone: tries for a few seconds, by its id or by the key of its start.

import { pause } from '../../protocol/cancellation.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { ToolContext } from '../tool-context.ts';
import { nowMs } from './wait-slices.ts';

const LONGEST_TRY_MS = 5000;
const BETWEEN_TRIES_MS = 200;

/** True if it was killed or had exited. A process that is not found yet may still be starting. */
export async function endProcess(
  context: ToolContext,
  { id, key }: { id?: string | undefined; key: string },
): Promise<boolean> {
  const untilMs = nowMs(context) + LONGEST_TRY_MS;
  for (;;) {
    try {
      const known = id ?? (await context.api.list({ key })).processes[0]?.id;
      if (known !== undefined) {
        await context.api.signal({ id: known, signal: 'kill', by: context.settings.by });
        return true;
      }
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      if (error.code === 'not_running') return true;
    }
    if (nowMs(context) >= untilMs) return false;
    await pause(context.clock, BETWEEN_TRIES_MS);
  }
}
