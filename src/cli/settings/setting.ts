// Each setting with its names, its option, and the check of a value.

import type { OptionRow, Options } from '../arguments/command.ts';
import {
  booleanOf,
  bytesOf,
  choiceOf,
  countOf,
  durationOf,
  limitsOf,
} from '../arguments/values.ts';
import { settings, type Rows, type Section, type SettingRow } from './table.ts';

export interface Setting {
  /** "serve.port" */
  readonly key: string;
  readonly section: Section;
  readonly name: string;
  readonly row: SettingRow;
  readonly variable: string;
  /** "--port", for settings that an option can set. */
  readonly option: string | undefined;
}

export const everySetting: readonly Setting[] = Object.entries(settings).flatMap(
  ([section, rows]) =>
    Object.entries(rows as Rows).map(([name, row]) => ({
      key: `${section}.${name}`,
      section: section as Section,
      name,
      row,
      variable: row.variable ?? variableOf(section, name),
      option: row.noOption ? undefined : `--${name}`,
    })),
);

function variableOf(section: string, name: string): string {
  return `HOLDFAST_${section}_${name}`.toUpperCase().replaceAll('-', '_');
}

/** The options of a command that are settings. */
export function settingOptions(section: Section): Options {
  const rows = Object.entries(settings[section] as Rows).filter(([, row]) => !row.noOption);
  return Object.fromEntries(rows.map(([name, row]) => [name, optionOf(row)]));
}

function optionOf({ kind, about, usual, value, choices, completes }: SettingRow): OptionRow {
  const isBoolean = kind === 'boolean';
  return {
    type: isBoolean ? 'boolean' : 'string',
    setting: true,
    about: isBoolean || usual === undefined ? about : `${about} (default ${usual})`,
    ...(kind === 'list' && { multiple: true as const }),
    ...(choices && { value: choices.join('|'), completes: choices }),
    ...(value !== undefined && { value }),
    ...(completes !== undefined && { completes }),
  };
}

/** A number of a file or of JSON as a word of the command line. */
export function wordOf({ bare }: SettingRow, value: unknown): string {
  const isNumber = typeof value === 'number' || typeof value === 'bigint';
  return `${String(value)}${isNumber ? (bare ?? '') : ''}`;
}

/** Throws a `WrongValue` for a text that cannot be the value of this setting. */
export function checkValue({ kind, choices = [], most }: SettingRow, text: string): void {
  if (kind === 'boolean') booleanOf(text);
  if (kind === 'bytes') bytesOf(text);
  if (kind === 'choice') choiceOf(text, choices);
  if (kind === 'count') countOf(text, most);
  if (kind === 'duration') durationOf(text);
  if (kind === 'limits') limitsOf(text);
}
