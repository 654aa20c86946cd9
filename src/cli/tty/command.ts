// A `tty` command: its flags, what it is called with, what it answers.

import { parseArgs } from 'node:util';
import type { KeeperLink } from '../../keeper/link.ts';
import type { Caller } from '../caller.ts';
import { parseDuration } from '../arguments/units.ts';
import { TtyError } from './envelope.ts';
import type { Settings } from './settings.ts';

export interface Flag {
  readonly type: 'string' | 'boolean';
  readonly multiple?: true;
  readonly short?: string;
  readonly about: string;
}

export interface TtyCommand {
  /** "record export" for a command of two words. */
  readonly name: string;
  readonly usage: string;
  readonly summary: string;
  readonly flags: Readonly<Record<string, Flag>>;
  /** Its lines are what a program printed, or a document: they are exact when piped. */
  readonly printsText?: true;
  readonly run: (call: TtyCall) => Promise<TtyAnswer>;
}

export interface TtyAnswer {
  readonly result: unknown;
  /** For a person. */
  readonly lines?: readonly string[];
  readonly exitCode?: number;
  /** For a person, beside the answer. */
  readonly note?: string;
}

export const globalFlags: Readonly<Record<string, Flag>> = {
  json: { type: 'boolean', about: 'answer in one JSON object' },
  home: { type: 'string', about: 'state directory' },
  'timeout-ms': { type: 'string', about: 'how long a call to the keeper may take at most' },
  'no-color': { type: 'boolean', about: 'accepted; nothing here is coloured' },
  'log-level': { type: 'string', about: 'debug says where a command works; info, warn, error' },
  profile: { type: 'string', about: 'theme of pictures: reference-dark or reference-light' },
  renderer: { type: 'string', about: 'accepted; there is one' },
  help: { type: 'boolean', short: 'h', about: 'show this help' },
};

type Values = Readonly<Record<string, string | boolean | (string | boolean)[] | undefined>>;

export class TtyCall {
  readonly caller: Caller;
  readonly words: readonly string[];
  /** A script that was written for agent-tty asks: its ways count where ours differ. */
  readonly isPeer: boolean;
  readonly settings: Settings;
  private readonly values: Values;
  private readonly command: TtyCommand;

  constructor(
    command: TtyCommand,
    args: readonly string[],
    caller: Caller,
    { settings, isPeer }: { readonly settings: Settings; readonly isPeer: boolean },
  ) {
    this.command = command;
    this.caller = caller;
    this.isPeer = isPeer;
    this.settings = settings;
    const rows = Object.entries({ ...command.flags, ...globalFlags });
    const options = Object.fromEntries(
      rows.map(([name, { type, multiple = false, short }]) => [
        name,
        { type, multiple, ...(short !== undefined && { short }) },
      ]),
    );
    try {
      const parsed = parseArgs({ args: [...args], options, allowPositionals: true });
      this.values = parsed.values;
      this.words = parsed.positionals;
    } catch (error) {
      const negative = /option '?--([\w-]+)'? argument is ambiguous/i.exec(
        error instanceof Error ? error.message : '',
      );
      if (negative) throw this.wrong(`--${negative[1]} must be a non-negative integer or a text`);
      const [sentence = ''] = (error instanceof Error ? error.message : '').split(/[.\n]/);
      throw this.wrong(sentence);
    }
  }

  host(): Promise<KeeperLink> {
    return this.caller.host();
  }

  flag(name: string): boolean {
    return this.values[name] === true;
  }

  text(name: string): string | undefined {
    const value = this.values[name];
    return typeof value === 'string' ? value : undefined;
  }

  texts(name: string): string[] {
    const value = this.values[name];
    return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
  }

  count(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    if (!/^\d{1,15}$/.test(text)) throw this.wrong(`--${name} must be a non-negative integer`);
    return Number(text);
  }

  /** In milliseconds, or with a unit: 30s. */
  duration(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined || /^\d+$/.test(text)) return this.count(name);
    const ms = parseDuration(text);
    if (ms === undefined) throw this.wrong(`--${name} must be a non-negative integer or like 30s`);
    return ms;
  }

  dimension(name: 'cols' | 'rows', usual = ''): number {
    const text = this.text(name) ?? usual;
    const value = Number(text);
    if (/^\d{1,4}$/.test(text) && value >= 1 && value <= 1000) return value;
    throw new TtyError('INVALID_DIMENSIONS', `--${name} must be a number from 1 to 1000.`);
  }

  choice<T extends string>(name: string, choices: readonly T[]): T | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const chosen = choices.find((choice) => choice === text);
    if (chosen === undefined) throw this.wrong(`--${name} must be one of ${choices.join(', ')}`);
    return chosen;
  }

  /** The words, when their number is one the command takes. */
  exactly(fewest: number, most = fewest): readonly string[] {
    if (this.words.length < fewest) throw this.wrong('something is missing');
    if (this.words.length > most) throw this.wrong(`"${this.words[most]}" is one word too many`);
    return this.words;
  }

  wrong(problem: string): TtyError {
    const { name, usage } = this.command;
    return new TtyError('INVALID_INPUT', `${name}: ${problem}.`, { usage: `${name} ${usage}` });
  }
}
