// The words behind a command's name, read by its option rows: every value is checked here, once, and a wrong one is
// named.

import { HoldfastError } from '../../protocol/errors.ts';
import { commonOptions, type Command } from './command.ts';
import { parseOptions, WrongWord, type ParsedWords } from './parse-options.ts';
import { parseDuration } from './units.ts';

/** The largest TCP port. */
export const MOST_PORT = 65_535;

export class Words {
  private readonly command: Command;
  private readonly parsed: ParsedWords;
  private sealed = false;

  constructor(command: Command, args: readonly string[]) {
    this.command = command;
    const rows = { ...command.options, ...commonOptions };
    try {
      this.parsed = parseOptions(
        command.spelling?.(args) ?? args,
        rows,
        command.runsWords === true,
      );
    } catch (error) {
      if (error instanceof WrongWord) throw this.wrong(error.message);
      throw error;
    }
  }

  /** What is no option, in order. */
  get plain(): readonly string[] {
    return this.parsed.plain;
  }

  /** Of these, what stood behind "--"; undefined when there was no "--". */
  get behindDashes(): readonly string[] | undefined {
    return this.parsed.behindDashes;
  }

  /** From here on something is done: a word that is only read now would be refused too late. */
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

  durationMs(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const ms = parseDuration(text);
    if (ms === undefined)
      throw this.wrong(`--${name} "${text}" is not a duration such as 500ms, 30s, 5m or 2h`);
    return ms;
  }

  count(name: string, most = Number.MAX_SAFE_INTEGER): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    if (!/^\d{1,15}$/.test(text)) throw this.wrong(`--${name} "${text}" is not a whole number`);
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

  /** The options that were given, as words that say the same again; some left out, some changed. */
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
    const { name, usage } = this.command;
    const stop = problem.includes('; did you mean ') ? '?' : '.';
    return new HoldfastError('invalid_input', `${name}: ${problem}${stop}`, {
      usage: `holdfast ${name} ${usage}`.trimEnd(),
    });
  }

  private given(name: string): readonly (string | true)[] {
    if (this.sealed) throw new Error(`--${name} is read after the start`);
    return this.parsed.values.get(name) ?? [];
  }
}

const WHICH = 'missing argument ID: give an id or a name; "holdfast ps" lists them';
const missingWords: Readonly<Record<string, string>> = { ID: WHICH, 'ID...': WHICH };

/** A word as a shell takes it when it is pasted. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
