// The rows of a list: slim, and together no larger than an answer may be.

import { MAX_LIST_CHARS, MAX_ROW_CHARS } from '../protocol/limits.ts';
import type { ProcessInfo } from '../protocol/process.ts';
import type { HeldProcess } from './process/held-process.ts';

const CUT = '…';
/** Estimate for the other fields of a row, with their names. */
const ROW_CHARS = 700;
/** Quotes and comma of an argument: there may be thousands of empty ones. */
const ARGUMENT_CHARS = 4;

/** As many rows as fit in one answer, from the first on; at least one. */
export function listRows(processes: readonly Pick<HeldProcess, 'info'>[]): ProcessInfo[] {
  const rows: ProcessInfo[] = [];
  let chars = 0;
  for (const process of processes) {
    const row = slimRow(process.info());
    chars += charsOf(row);
    if (rows.length > 0 && chars > MAX_LIST_CHARS) break;
    rows.push(row);
  }
  return rows;
}

/** The same with a short command line, marked as cut if needed. */
export function slimRow(info: ProcessInfo): ProcessInfo {
  const command = cutText(info.command, MAX_ROW_CHARS);
  const argv = cutArguments(info.argv);
  if (command === info.command && argv === info.argv) return info;
  return { ...info, command, argv, cut: true };
}

function cutText(text: string, most: number): string {
  if (text.length <= most) return text;
  // Do not split a surrogate pair.
  return text.slice(0, most).replace(/[\ud800-\udbff]$/, '') + CUT;
}

function cutArguments(argv: readonly string[]): readonly string[] {
  let left = MAX_ROW_CHARS;
  for (const [index, argument] of argv.entries()) {
    if (argument.length + ARGUMENT_CHARS > left)
      return [...argv.slice(0, index), cutText(argument, Math.max(0, left - ARGUMENT_CHARS))];
    left -= argument.length + ARGUMENT_CHARS;
  }
  return argv;
}

function charsOf({ command, argv, cwd, labels }: ProcessInfo): number {
  let chars = ROW_CHARS + command.length + cwd.length;
  for (const argument of argv) chars += argument.length + ARGUMENT_CHARS;
  for (const [name, value] of Object.entries(labels ?? {})) chars += name.length + value.length + 6;
  return chars;
}
