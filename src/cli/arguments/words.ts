// The words after a command's name. Every value is checked here, and an error names the wrong one.

import { HoldfastError } from '../../protocol/errors.ts';
import { holdfast, usageOf, type CommandHead, type Program } from './command.ts';
import { parseOptions, WrongWord, type ParsedWords } from './parse-options.ts';
import { parseDuration, type DurationUnit } from './units.ts';

/** The largest TCP port. */
export const MOST_PORT = 65_535;

export class Words {
  private readonly command: CommandHead;
  private readonly program: Program;
  private readonly parsed: ParsedWords;
  private sealed = false;

  constructor(command: CommandHead, args: readonly string[], program = holdfast) {
    this.command = command;
    this.program = program;
    const rows = { ...command.options, ...program.options };
    try {
      this.parsed = parseOptions(command.spelling?.(args) ?? args, rows, {
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

  flag(name: string): boolean {
    return this.given(name).length > 0;
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
    const text = this.text(name);
    if (text === undefined) return undefined;
    const ms = parseDuration(text, bare);
    if (ms === undefined)
      throw this.wrong(`--${name} "${text}" is not a duration such as 500ms, 30s, 5m or 2h`);
    return ms;
  }

  count(name: string, most = Number.MAX_SAFE_INTEGER): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    if (!/^\d{1,15}$/.test(text))
      throw this.wrong(`--${name} "${text}" is not a non-negative integer`);
    if (Number(text) > most) throw this.wrong(`--${name} "${text}" is more than ${most}`);
    return Number(text);
  }

  choice<T extends string>(name: string, choices: readonly T[]): T | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const chosen = choices.find((choice) => choice === text);
    if (chosen === undefined)
      throw this.wrong(`--${name} "${text}" is not one of ${choices.join(', ')}`);
    return chosen;
  }

  /** The given options as words for another command line, without some, with some values changed. */
  again(
    without: readonly string[],
    changed: Readonly<Record<string, (text: string) => string>>,
  ): string[] {
    const kept = [...this.parsed.values].filter(([name]) => !without.includes(name));
    return kept.flatMap(([name, values]) =>
      values.flatMap((value) =>
        value === true ? [`--${name}`] : [`--${name}`, changed[name]?.(value) ?? value],
      ),
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
    return this.parsed.values.get(name) ?? [];
  }
}

const WHICH = 'missing argument ID: give an id or a name; "holdfast ps" lists them';
const missingWords: Readonly<Record<string, string>> = { ID: WHICH, 'ID...': WHICH };

/** A word as a shell takes it when it is pasted. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
