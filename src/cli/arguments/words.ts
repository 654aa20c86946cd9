// The words after a command's name. Every value is checked here, and an error names the wrong one.

import { HoldfastError } from '../../protocol/errors.ts';
import { holdfast, usageOf, type CommandHead, type Options, type Program } from './command.ts';
import { parseOptions, WrongWord, type ParsedWords } from './parse-options.ts';
import type { DurationUnit } from './units.ts';
import {
  booleanOf,
  bytesOf,
  choiceOf,
  countOf,
  durationOf,
  fractionOf,
  limitsOf,
  WrongValue,
} from './values.ts';

export class Words {
  private readonly command: CommandHead;
  private readonly program: Program;
  private readonly parsed: ParsedWords;
  private readonly rows: Options;
  private sealed = false;
  private configured: (name: string) => readonly string[] | undefined = () => undefined;

  constructor(command: CommandHead, args: readonly string[], program = holdfast) {
    this.command = command;
    this.program = program;
    this.rows = { ...command.options, ...program.options };
    try {
      this.parsed = parseOptions(command.spelling?.(args) ?? args, this.rows, {
        stopAtWord: command.runsWords === true,
        dashedValues: program.dashedValues === true,
      });
    } catch (error) {
      if (error instanceof WrongWord) throw this.wrong(error.message);
      throw error;
    }
  }

  /** What is no option, in order. */
  get plain(): readonly string[] {
    return this.parsed.plain;
  }

  /** Of these, the words after "--"; undefined when there was no "--". */
  get behindDashes(): readonly string[] | undefined {
    return this.parsed.behindDashes;
  }

  /** Called before the command acts: an option that is read later would be checked too late. */
  seal(): void {
    this.sealed = true;
  }

  /** Values for options that are not on the command line. */
  configure(find: (name: string) => readonly string[] | undefined): void {
    this.configured = find;
  }

  flag(name: string, usual = false): boolean {
    const value = this.given(name).at(-1) ?? String(usual);
    return value === true || booleanOf(value);
  }

  /** On the command line itself: neither a variable nor the file has it. */
  isTyped(name: string): boolean {
    return this.parsed.values.has(name);
  }

  text(name: string): string | undefined {
    const value = this.given(name).at(-1);
    if (value === '') throw this.wrong(`--${name} must not be empty`);
    return typeof value === 'string' ? value : undefined;
  }

  texts(name: string): readonly string[] {
    return this.given(name).filter((each) => typeof each === 'string');
  }

  /** A number without a unit counts `bare`. */
  durationMs(name: string, bare: DurationUnit = 's'): number | undefined {
    return this.value(name, (text) => durationOf(text, bare));
  }

  count(name: string, most?: number): number | undefined {
    return this.value(name, (text) => countOf(text, most));
  }

  bytes(name: string): number | undefined {
    return this.value(name, bytesOf);
  }

  fraction(name: string): number | undefined {
    return this.value(name, fractionOf);
  }

  limits(name: string): ReturnType<typeof limitsOf> | undefined {
    return this.value(name, limitsOf);
  }

  choice<T extends string>(name: string, choices: readonly T[]): T | undefined {
    return this.value(name, (text) => choiceOf(text, choices));
  }

  private value<T>(name: string, read: (text: string) => T): T | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    try {
      return read(text);
    } catch (error) {
      if (error instanceof WrongValue) throw this.wrong(`--${name} "${text}" ${error.message}`);
      throw error;
    }
  }

  /** Another command line, with the same settings behind it. */
  with(args: readonly string[], command = this.command): Words {
    const other = new Words(command, args, this.program);
    other.configure(this.configured);
    return other;
  }

  /** The options of this command line as words for another one, without some, with some values changed. */
  again(
    without: readonly string[],
    changed: Readonly<Record<string, (text: string) => string>>,
  ): string[] {
    const kept = [...this.parsed.values].filter(([name]) => !without.includes(name));
    return kept.flatMap(([name, values]) =>
      values.flatMap((value) => {
        if (value === true) return [`--${name}`];
        const isBoolean = this.rows[name]?.type === 'boolean';
        return isBoolean ? [`--${name}=${value}`] : [`--${name}`, changed[name]?.(value) ?? value];
      }),
    );
  }

  /** The plain words, when they are as many as these names: "[FILE]" may be missing, "ID..." is one or more. */
  expect(...names: string[]): readonly string[] {
    const needed = names.filter((name) => !name.startsWith('['));
    const missing = needed[this.plain.length];
    if (missing !== undefined)
      throw this.wrong(missingWords[missing] ?? `missing argument ${missing}`);
    const empty = names.find((name, at) => name.startsWith('ID') && this.plain[at] === '');
    if (empty !== undefined) throw this.wrong('argument ID is empty (an unset variable?)');
    const most = names.at(-1)?.endsWith('...') ? Infinity : names.length;
    const [surplus] = this.plain.slice(most);
    if (surplus !== undefined) throw this.wrong(`unexpected argument "${surplus}"`);
    return this.plain;
  }

  wrong(problem: string): HoldfastError {
    const stop = problem.includes('; did you mean ') ? '?' : '.';
    return new HoldfastError('invalid_input', `${this.command.name}: ${problem}${stop}`, {
      usage: usageOf(this.command, this.program),
    });
  }

  private given(name: string): readonly (string | true)[] {
    if (this.sealed) throw new Error(`--${name} is read after the command has begun to act`);
    return this.parsed.values.get(name) ?? this.configured(name) ?? [];
  }
}

const WHICH = 'missing argument ID: give an id or a name; "holdfast ps" lists them';
const missingWords: Readonly<Record<string, string>> = { ID: WHICH, 'ID...': WHICH };

/** A word as a shell takes it when it is pasted. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
