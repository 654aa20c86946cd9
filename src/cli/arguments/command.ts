// A command of the command line: the entry at the top of its file, and the help made from it.

import type { ErrorCode } from '../../protocol/errors.ts';
import type { Caller } from '../caller.ts';
import type { Output, StyledLine } from '../output/output.ts';
import type { Section } from '../settings/table.ts';
import type { Words } from './words.ts';

export interface OptionRow {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  readonly multiple?: true;
  /** What stands for the value in the help: "DIR", "30s". */
  readonly value?: string;
  /** What completes the value: these words, or a kind of thing. */
  readonly completes?: readonly string[] | 'directory' | 'signal';
  /** A setting, too: a variable or config.toml may have its value. */
  readonly setting?: true;
  /** Accepted, but not in the help: it has no effect here. */
  readonly hidden?: true;
  readonly about: string;
}

export type Options = Readonly<Record<string, OptionRow>>;

/** What the command line, the help and the completion know of a command, of `tty` too. */
export interface CommandHead {
  /** "logs"; "record export" for a command of two words. */
  readonly name: string;
  /** What follows the name: "ID... [options]". */
  readonly usage: string;
  /** One line, for the list of commands. */
  readonly summary: string;
  readonly options: Options;
  /** What the options do not say. */
  readonly notes?: readonly string[];
  /** Whole command lines, as people would type them. */
  readonly examples: readonly string[];
  /** The words are a program and its arguments: options end at the first of them. */
  readonly runsWords?: true;
  /** Rewrites what other programs have taught people to write: "-9" for "--signal=9". */
  readonly spelling?: (args: readonly string[]) => string[];
}

export interface Command extends CommandHead {
  /** What its words are, for completion: processes, or one of these. */
  readonly takes?: 'processes' | readonly string[];
  /** The sections of the settings that its options are in. */
  readonly settings?: readonly Section[];
  /** Exit codes for failures, in place of those of the error table. */
  readonly failureExit?: (code: ErrorCode) => number;
  /** Reads every word before it returns the action: nothing starts before the whole command line is understood. */
  readonly read: (call: Call) => Action;
}

type Action = () => Promise<Answer>;

/** What a command is given. */
export interface Call {
  readonly words: Words;
  readonly caller: Caller;
  readonly out: Output;
}

export interface Answer {
  /** What `--json` prints. */
  readonly result: unknown;
  /** Lines for stdout, for a person; absent when the command has printed already. */
  readonly lines?: readonly (string | StyledLine)[];
  /** Everything has been printed already, with `--json` too. */
  readonly said?: true;
  /** 0 when absent. */
  readonly exitCode?: number;
  /** Part of the command failed: `--json` prints the error and the result. */
  readonly error?: unknown;
}

export const commonOptions: Options = {
  json: { type: 'boolean', about: 'print one JSON object' },
  home: {
    type: 'string',
    value: 'DIR',
    completes: 'directory',
    about: 'state directory (default $HOLDFAST_HOME or ~/.holdfast)',
  },
  owner: {
    type: 'string',
    value: 'NAME',
    about: 'see and start only processes of this owner',
  },
  help: { type: 'boolean', short: 'h', about: 'show this help' },
};

/** The program that a command belongs to, and the options that all its commands take. */
export interface Program {
  readonly name: string;
  readonly options: Options;
  /** The word after an option is its value, also when it begins with a dash. */
  readonly dashedValues?: true;
}

export const holdfast: Program = { name: 'holdfast', options: commonOptions };

export function usageOf({ name, usage }: CommandHead, program: Program): string {
  return `${program.name} ${name} ${usage}`.trimEnd();
}

export function helpOf(command: CommandHead, program = holdfast): string[] {
  return [
    usageOf(command, program),
    '',
    `  ${command.summary}`,
    ...(command.notes ? ['', ...command.notes.map((note) => `  ${note}`)] : []),
    '',
    ...command.examples.map((line) => `    ${line}`),
    '',
    ...optionLines({ ...command.options, ...program.options }),
  ];
}

function optionLines(options: Options): string[] {
  const rows = Object.entries(options)
    .filter(([, { hidden }]) => !hidden)
    .map(([name, row]) => {
      const short = row.short === undefined ? '    ' : `-${row.short}, `;
      const value = row.type === 'string' ? ` ${row.value ?? 'VALUE'}` : '';
      return { flag: `  ${short}--${name}${value}`, about: row.about };
    });
  const width = Math.max(...rows.map(({ flag }) => flag.length)) + 2;
  return rows.map(({ flag, about }) => flag.padEnd(width) + about);
}
