// config.toml of a state directory: its values by setting, and the line of each.

import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { TomlTable, TomlValue } from 'smol-toml';
import { errnoOf } from '../../base/disk.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { nearest } from '../arguments/nearest.ts';
import { WrongValue } from '../arguments/values.ts';
import { checkValue, everySetting, wordOf, type Setting } from './setting.ts';
import { settings } from './table.ts';

const CONFIG_FILE = 'config.toml';
/** A file of settings is a few lines. */
const MAX_CONFIG_BYTES = 64 * 1024;
/** A file with more lines has no line numbers in its errors: each line costs a parse. */
const MAX_NUMBERED_LINES = 1000;

export type Parse = (text: string) => TomlTable;

export interface FileValue {
  readonly words: readonly string[];
  readonly line: () => number | undefined;
}

export function configPath(home: string): string {
  return join(home, CONFIG_FILE);
}

/** Undefined when there is none. */
export function readConfigText(file: string): string | undefined {
  let fd: number;
  try {
    fd = openSync(file, 'r');
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT' || errno === 'ENOTDIR') return undefined;
    throw wrong(`${file} cannot be read: ${errno}.`);
  }
  try {
    const found = fstatSync(fd);
    if (!found.isFile()) throw wrong(`${file} is not a file.`);
    if (found.size > MAX_CONFIG_BYTES)
      throw wrong(`${file} is larger than ${MAX_CONFIG_BYTES} bytes.`);
    const isOurs = found.uid === process.getuid?.() || found.uid === 0;
    if (!isOurs || (found.mode & 0o022) !== 0)
      throw wrong(`${file} can be changed by other users; make it yours with mode 0600.`);
    return readFileSync(fd, 'utf8');
  } finally {
    closeSync(fd);
  }
}

/** Throws for what is no setting, with the line and the setting that was probably meant. */
export function readConfig(
  { file, text }: { readonly file: string; readonly text: string },
  parse: Parse,
): ReadonlyMap<string, FileValue> {
  const table = parseWhole(file, text, parse);
  let lines: ReadonlyMap<string, number> | undefined;
  const lineOf = (key: string): number | undefined => (lines ??= linesOf(text, parse)).get(key);
  const refuse = (key: string, problem: string): never => {
    const line = lineOf(key);
    throw wrong(`${line === undefined ? file : `${file}:${line}`}: ${problem}`);
  };
  const values = new Map<string, FileValue>();
  for (const [section, rows] of Object.entries(table)) {
    if (!Object.hasOwn(settings, section)) refuse(section, unknownSection(section));
    if (!isTable(rows)) refuse(section, `"${section}" is a table; write [${section}].`);
    for (const [name, value] of Object.entries(rows as TomlTable)) {
      const key = `${section}.${name}`;
      const setting = everySetting.find((each) => each.key === key);
      if (!setting) refuse(key, unknownSetting(section, name));
      else {
        const words = wordsOf(setting, value, file);
        if (typeof words === 'string') refuse(key, words);
        else values.set(key, { words, line: () => lineOf(key) });
      }
    }
  }
  return values;
}

function wrong(problem: string): HoldfastError {
  return new HoldfastError('invalid_input', problem, {
    remedy: 'Correct it; "holdfast config --example" prints every setting with its default.',
  });
}

function parseWhole(file: string, text: string, parse: Parse): TomlTable {
  try {
    return parse(text);
  } catch (error) {
    const { line, message } = error as { readonly line?: number; readonly message: string };
    // The lines below the first show the place again.
    const [reason = ''] = message.split('\n');
    throw wrong(`${line === undefined ? file : `${file}:${line}`}: ${reason}.`);
  }
}

/**
 * The parser gives no positions. A key stands in the first line up to which the file can be parsed with it; its value
 * may begin above, after the last line up to which the file can be parsed without it.
 */
function linesOf(text: string, parse: Parse): Map<string, number> {
  const lines = text.split('\n');
  const found = new Map<string, number>();
  let begins = 1;
  for (let count = 1; count <= Math.min(lines.length, MAX_NUMBERED_LINES); count += 1) {
    let table: TomlTable;
    try {
      table = parse(lines.slice(0, count).join('\n'));
    } catch {
      continue;
    }
    for (const [section, rows] of Object.entries(table))
      for (const key of [section, ...keysIn(section, rows)])
        if (!found.has(key)) found.set(key, begins);
    begins = count + 1;
  }
  return found;
}

function keysIn(section: string, rows: TomlValue): string[] {
  return isTable(rows) ? Object.keys(rows).map((name) => `${section}.${name}`) : [];
}

function isTable(value: TomlValue | undefined): value is TomlTable {
  return typeof value === 'object' && !Array.isArray(value) && !(value instanceof Date);
}

function unknownSection(name: string): string {
  const belongs = everySetting.filter((each) => each.name === name);
  if (belongs.length > 0) {
    const tables = belongs.map(({ section }) => `[${section}]`).join(' or ');
    return `"${name}" belongs below ${tables}.`;
  }
  const near = nearest(name, Object.keys(settings));
  return `unknown table [${name}]${near === undefined ? '' : `; did you mean [${near}]?`}`;
}

function unknownSetting(section: string, name: string): string {
  const names = everySetting.filter((each) => each.section === section).map((each) => each.name);
  const near = nearest(name, names);
  const other = everySetting.find((each) => each.name === name)?.section;
  const meant =
    near !== undefined
      ? `; did you mean "${section}.${near}"?`
      : other !== undefined
        ? `; there is "${other}.${name}".`
        : '.';
  return `unknown setting "${section}.${name}"${meant}`;
}

/** As the words of an option, or the problem with them. */
function wordsOf({ key, row }: Setting, value: TomlValue, file: string): string[] | string {
  const list = row.kind === 'list' && Array.isArray(value) ? value : [value];
  const words: string[] = [];
  for (const each of list) {
    const isWord = ['string', 'number', 'bigint'].includes(typeof each);
    if (typeof each === 'boolean' ? row.kind !== 'boolean' : !isWord || row.kind === 'boolean')
      return `${key} must be ${meantBy[row.kind]}.`;
    const word = wordOf(row, each);
    if (word === '') return `${key} must not be empty; leave it out.`;
    try {
      checkValue(row, word);
    } catch (error) {
      if (error instanceof WrongValue) return `${key} "${word}" ${error.message}.`;
      throw error;
    }
    words.push(row.kind === 'path' ? pathOf(word, file) : word);
  }
  return words;
}

const meantBy: Readonly<Record<Setting['row']['kind'], string>> = {
  text: 'a string',
  path: 'a string',
  count: 'an integer',
  duration: 'a string such as "30s"',
  bytes: 'a string such as "64M", or an integer',
  boolean: 'true or false',
  list: 'a list of strings',
  choice: 'a string',
  limits: 'a string such as "memory=8G"',
};

/** A server may be started in any directory: a relative path counts from the file. */
function pathOf(word: string, file: string): string {
  if (word === 'none') return word;
  if (word === '~' || word.startsWith('~/')) return join(homedir(), word.slice(1));
  return resolve(dirname(file), word);
}
