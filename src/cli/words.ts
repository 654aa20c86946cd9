// The words behind a command's name, read by its option rows: every value is checked here, once, and a wrong one is
// named.

import { parseArgs } from 'node:util';
import { HoldfastError } from '../protocol/errors.ts';
import { commonOptions, type Command } from './command.ts';
import { parseDuration } from './units.ts';

type Values = Readonly<Record<string, string | boolean | (string | boolean)[] | undefined>>;

export class Words {
  /** What is no option, in order. */
  readonly plain: readonly string[];
  /** Of these, what stood behind "--"; undefined when there was no "--". */
  readonly behindDashes: readonly string[] | undefined;
  private readonly command: Command;
  private readonly values: Values;

  constructor(command: Command, args: readonly string[]) {
    this.command = command;
    const { values, positionals, tokens } = this.parse(args);
    this.values = values;
    this.plain = positionals;
    const dashes = tokens.find((token) => token.kind === 'option-terminator');
    const behind = tokens.filter(
      (token) => token.kind === 'positional' && dashes && token.index > dashes.index,
    );
    this.behindDashes = dashes && positionals.slice(positionals.length - behind.length);
  }

  flag(name: string): boolean {
    return this.values[name] === true;
  }

  text(name: string): string | undefined {
    const value = this.values[name];
    if (value === '') throw this.wrong(`--${name} must not be empty`);
    return typeof value === 'string' ? value : undefined;
  }

  texts(name: string): readonly string[] {
    const value = this.values[name];
    return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
  }

  durationMs(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const ms = parseDuration(text);
    if (ms === undefined)
      throw this.wrong(`--${name} "${text}" is not a duration such as 500ms, 30s, 5m or 2h`);
    return ms;
  }

  count(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    if (!/^\d{1,15}$/.test(text)) throw this.wrong(`--${name} "${text}" is not a whole number`);
    return Number(text);
  }

  /** The plain words, when their number is one the command takes. */
  exactly(fewest: number, most: number): readonly string[] {
    if (this.plain.length < fewest) throw this.wrong('something is missing');
    const [surplus] = this.plain.slice(most);
    if (surplus !== undefined) throw this.wrong(`"${surplus}" is one word too many`);
    return this.plain;
  }

  wrong(problem: string): HoldfastError {
    const { name, usage } = this.command;
    return new HoldfastError('invalid_input', `${name}: ${problem}.`, {
      usage: `holdfast ${name} ${usage}`.trimEnd(),
    });
  }

  private parse(args: readonly string[]) {
    const rows = Object.entries({ ...this.command.options, ...commonOptions });
    const options = Object.fromEntries(
      rows.map(([name, { type, short, multiple = false }]) => [
        name,
        { type, multiple, ...(short !== undefined && { short }) },
      ]),
    );
    try {
      return parseArgs({ args: [...args], options, allowPositionals: true, tokens: true });
    } catch (error) {
      const [sentence = 'not understood'] = (error instanceof Error ? error.message : '').split(
        /[.\n]/,
      );
      throw this.wrong(sentence.charAt(0).toLowerCase() + sentence.slice(1));
    }
  }
}

/** A word as a shell takes it when it is pasted. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
