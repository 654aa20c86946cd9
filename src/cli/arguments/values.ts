// Reads one value of an option or a setting from its text.

import type { ResourceLimits } from '../../protocol/confinement/confinement.ts';
import { parseDuration, type DurationUnit } from './units.ts';

/** The end of a sentence that begins with the option and its value: "is not a duration such as 30s". */
export class WrongValue extends Error {}

export function durationOf(text: string, bare: DurationUnit = 's'): number {
  const ms = parseDuration(text, bare);
  if (ms === undefined) throw new WrongValue('is not a duration such as 500ms, 30s, 5m or 2h');
  return ms;
}

export function countOf(text: string, most = Number.MAX_SAFE_INTEGER): number {
  if (!/^\d{1,15}$/.test(text)) throw new WrongValue('is not a non-negative integer');
  if (Number(text) > most) throw new WrongValue(`is more than ${most}`);
  return Number(text);
}

export function choiceOf<T extends string>(text: string, choices: readonly T[]): T {
  const chosen = choices.find((choice) => choice === text);
  if (chosen === undefined) throw new WrongValue(`is not one of ${choices.join(', ')}`);
  return chosen;
}

const UNITS: Readonly<Record<string, number>> = { '': 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3 };

/** "512M", "2G": powers of 1024. */
export function bytesOf(text: string): number {
  const match = /^(\d{1,15}(?:\.\d{1,3})?)([KMG]?)B?$/i.exec(text);
  const bytes = Math.round(Number(match?.[1]) * (UNITS[(match?.[2] ?? '').toUpperCase()] ?? 1));
  if (!Number.isSafeInteger(bytes)) throw new WrongValue('is not a size such as 512M or 2G');
  return bytes;
}

export function fractionOf(text: string): number {
  if (!/^\d{1,4}(?:\.\d{1,3})?$/.test(text) || Number(text) <= 0)
    throw new WrongValue('is not a number such as 1 or 0.5');
  return Number(text);
}

/** "memory=8G,pids=500,cpus=2"; "none" is no limit at all. */
export function limitsOf(text: string): Pick<ResourceLimits, 'memory' | 'pids' | 'cpus'> {
  if (text === 'none') return {};
  const limits = text.split(',').map((each) => {
    const [name = '', value = ''] = each.split(/=(.*)/s);
    const read = LIMITS.get(name);
    if (!read) throw new WrongValue('is not a list such as memory=8G,pids=500,cpus=2');
    return [name, read(value)] as const;
  });
  return Object.fromEntries(limits);
}

const LIMITS = new Map([
  ['memory', bytesOf],
  ['pids', (text: string) => countOf(text)],
  ['cpus', fractionOf],
]);

const TRUE = ['true', 'on', 'yes', '1'];
const FALSE = ['false', 'off', 'no', '0'];

export function booleanOf(text: string): boolean {
  return TRUE.includes(choiceOf(text, [...TRUE, ...FALSE]));
}
