// Reads the options and other words of a command line, in one pass, and says which word is wrong and what was meant.

import type { Options } from './command.ts';
import { nearest } from './nearest.ts';

export interface ParsedWords {
  readonly values: ReadonlyMap<string, readonly (string | true)[]>;
  /** What is no option, in order. */
  readonly plain: readonly string[];
  /** Of these, the words after "--"; undefined when there was no "--". */
  readonly behindDashes: readonly string[] | undefined;
}

/** The sentence of a refusal, without its command and full stop. */
export class WrongWord extends Error {}

export interface ParseHow {
  /** Everything from the first word on that is no option is taken as it is. */
  readonly stopAtWord: boolean;
  /** The word after an option is its value, also when it begins with a dash. */
  readonly dashedValues: boolean;
}

export function parseOptions(
  args: readonly string[],
  rows: Options,
  { stopAtWord, dashedValues }: ParseHow,
): ParsedWords {
  const values = new Map<string, (string | true)[]>();
  const plain: string[] = [];
  const give = (name: string, value: string | true): void =>
    void values.set(name, [...(values.get(name) ?? []), value]);
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at] ?? '';
    if (word === '--') {
      const behindDashes = args.slice(at + 1);
      return { values, plain: [...plain, ...behindDashes], behindDashes };
    }
    if (!word.startsWith('-') || word === '-') {
      if (stopAtWord)
        return { values, plain: [...plain, ...args.slice(at)], behindDashes: undefined };
      plain.push(word);
      continue;
    }
    for (const { name, value } of optionsIn(word, rows)) {
      if (value !== undefined || rows[name]?.type === 'boolean') {
        give(name, value ?? true);
        continue;
      }
      at += 1;
      give(name, valueFor(name, args[at], dashedValues));
    }
  }
  return { values, plain, behindDashes: undefined };
}

/** The words that are options, right or wrong: for what must be known before they are parsed. */
export function optionWords(
  args: readonly string[],
  rows: Options,
  { stopAtWord = false }: { readonly stopAtWord?: boolean } = {},
): string[] {
  const found: string[] = [];
  for (let at = 0; at < args.length && args[at] !== '--'; at += 1) {
    const word = args[at] ?? '';
    if (word.startsWith('-') && word !== '-') {
      found.push(word);
      if (takesNext(word, rows)) at += 1;
    } else if (stopAtWord) break;
  }
  return found;
}

function takesNext(word: string, rows: Options): boolean {
  try {
    const last = optionsIn(word, rows).at(-1);
    return last !== undefined && last.value === undefined && rows[last.name]?.type === 'string';
  } catch {
    return false;
  }
}

interface Found {
  readonly name: string;
  readonly value: string | undefined;
}

/** One word: "--name", "--name=value", "-n", "-nVALUE", or several letters of which only the last takes a value. */
function optionsIn(word: string, rows: Options): Found[] {
  if (word.startsWith('--')) {
    const equals = word.indexOf('=');
    const name = word.slice(2, equals < 0 ? undefined : equals);
    const value = equals < 0 ? undefined : word.slice(equals + 1);
    const row = Object.hasOwn(rows, name) ? rows[name] : undefined;
    if (!row) throw new WrongWord(`unknown option --${name}${meant(name, rows)}`);
    if (row.type === 'boolean' && value !== undefined && !(row.setting && isBoolean(value)))
      throw new WrongWord(`--${name} takes ${row.setting ? 'true or false' : 'no value'}`);
    return [{ name, value }];
  }
  const found: Found[] = [];
  const letters = Array.from(word.slice(1));
  for (const [index, letter] of letters.entries()) {
    const [name, row] = Object.entries(rows).find(([, { short }]) => short === letter) ?? [];
    if (name === undefined || !row)
      throw new WrongWord(`unknown option -${letter}${meant(word.slice(1), rows)}`);
    const rest = letters.slice(index + 1).join('');
    if (row.type === 'boolean') found.push({ name, value: undefined });
    else return [...found, { name, value: rest === '' ? undefined : rest }];
  }
  return found;
}

function isBoolean(text: string): boolean {
  return text === 'true' || text === 'false';
}

function valueFor(name: string, next: string | undefined, dashedValues: boolean): string {
  if (next === undefined) throw new WrongWord(`--${name} needs a value`);
  if (!dashedValues && next.startsWith('-') && next !== '-')
    throw new WrongWord(`--${name} needs a value; to pass "${next}", write --${name}=${next}`);
  return next;
}

function meant(name: string, rows: Options): string {
  const near = nearest(name, Object.keys(rows));
  return near === undefined ? '' : `; did you mean --${near}`;
}
