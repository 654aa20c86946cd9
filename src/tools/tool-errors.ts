// Errors of the tools. A tool error means that the call was wrong; whatever happens to a process is an answer.

import { HoldfastError } from '../protocol/errors.ts';
import { parseDuration } from './duration.ts';

export class ToolError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ToolError';
  }
}

export function durationOf(field: string, text: string | undefined, fallbackMs: number): number {
  if (text === undefined) return fallbackMs;
  const ms = parseDuration(text);
  if (ms === undefined)
    throw new ToolError(`invalid ${field} "${text}": not a duration such as "30s" or "1m30s"`);
  return Math.max(0, ms);
}

/** The text of an error, with the tool that helps, if there is one. */
export function describeError({ code, message }: HoldfastError): string {
  if (code === 'not_found') return `${message.replace(/\.$/, '')}; process_list shows yours`;
  if (code === 'keyboard_held')
    return `${message} Nothing was typed. Leave the terminal to that person: wait, then terminal_read, because the screen may have changed, and try again.`;
  return message;
}

/** Returns errors about a process as an answer. A cancelled call, and bugs of ours, are thrown. */
export async function reportAsFailure<T>(
  doing: string,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<T | { success: false; error: string }> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof HoldfastError) || signal?.aborted === true) throw error;
    return { success: false, error: `${doing}: ${describeError(error)}` };
  }
}
