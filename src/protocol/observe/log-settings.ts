// What a log contains, and in which form.

import { HoldfastError } from '../errors.ts';

/** From the least to the most important. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export const LOG_FORMATS = ['text', 'json'] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];
type LogFormat = (typeof LOG_FORMATS)[number];

export interface LogSettings {
  /** Less important lines are left out. */
  readonly level: LogLevel;
  readonly format: LogFormat;
}

/** From HOLDFAST_LOG and HOLDFAST_LOG_FORMAT; an empty word is the default. */
export function parseLogSettings(
  level: string | undefined,
  format: string | undefined,
): LogSettings {
  return {
    level: oneOf(LOG_LEVELS, level || 'info', 'HOLDFAST_LOG'),
    format: oneOf(LOG_FORMATS, format || 'text', 'HOLDFAST_LOG_FORMAT'),
  };
}

function oneOf<T extends string>(known: readonly T[], given: string, name: string): T {
  const found = known.find((each) => each === given);
  if (found !== undefined) return found;
  const problem = `${name} is ${known.join(', ')}, not "${given}".`;
  throw new HoldfastError('invalid_input', problem, { field: name });
}
