// The command: the one declarative entry that a command's file begins with, and the help that follows from it.

import type { ErrorCode } from '../../protocol/errors.ts';
import type { Caller } from '../caller.ts';
import type { Output, StyledLine } from '../output/output.ts';
import type { Words } from './words.ts';

export interface OptionRow {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  readonly multiple?: true;
  /** What stands for the value in the help: "DIR", "30s". */
  readonly value?: string;
  /** What completes the value: these words, or a kind of thing. */
  readonly completes?: readonly string[] | 'directory' | 'signal';
  readonly about: string;
}

export interface Command {
  readonly name: string;
  /** What follows the name: "ID... [options]". */
  readonly usage: string;
  /** One line, for the list of commands. */
  readonly summary: string;
  readonly options: Readonly<Record<string, OptionRow>>;
  /** What the options do not say. */
  readonly notes?: readonly string[];
  /** What its words are, for completion: processes, or one of these. */
  readonly takes?: 'processes' | readonly string[];
  /** Its words are a program and its arguments: options end at the first of them. */
  readonly runsWords?: true;
  /** Rewrites what other programs have taught people to write: "-9" for "--signal=9". */
  readonly spelling?: (args: readonly string[]) => string[];
  /** Exit codes of its own for failures, in place of those of the error table. */
  readonly failureExit?: (code: ErrorCode) => number;
  /** Reads every word, and only then answers what is to be done: nothing is begun before all of it is understood. */
  readonly read: (call: Call) => Action;
}

type Action = () => Promise<Answer>;

/** What a command works with. */
export interface Call {
  readonly words: Words;
  readonly caller: Caller;
  readonly out: Output;
}

export interface Answer {
  /** What `--json` prints. */
  readonly result: unknown;
  /** What a person reads: lines for stdout, when the command has not printed already. */
  readonly lines?: readonly (string | StyledLine)[];
  /** Everything has been printed already, with `--json` too. */
  readonly said?: true;
  /** 0 when absent. */
  readonly exitCode?: number;
  /** Something failed although the rest was done: `--json` says so and still carries the result. */
  readonly error?: unknown;
}

export const commonOptions: Readonly<Record<string, OptionRow>> = {
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

export function helpOf(command: Command): string[] {
  return [
    `holdfast ${command.name} ${command.usage}`.trimEnd(),
    '',
    `  ${command.summary}`,
    ...(command.notes ? ['', ...command.notes.map((note) => `  ${note}`)] : []),
    '',
    ...optionLines({ ...command.options, ...commonOptions }),
  ];
}

function optionLines(options: Readonly<Record<string, OptionRow>>): string[] {
  const rows = Object.entries(options).map(([name, row]) => {
    const short = row.short === undefined ? '    ' : `-${row.short}, `;
    const value = row.type === 'string' ? ` ${row.value ?? 'VALUE'}` : '';
    return { flag: `  ${short}--${name}${value}`, about: row.about };
  });
  const width = Math.max(...rows.map(({ flag }) => flag.length)) + 2;
  return rows.map(({ flag, about }) => flag.padEnd(width) + about);
}
