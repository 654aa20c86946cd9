// Extracts parts of a TOML file by their keys, as TOML.

import type { TomlTable, TomlValue } from 'smol-toml';
import { lazyModules } from '../../lazy-modules.ts';

export class TomlProblem extends Error {
  constructor(message: string, line: number, column: number) {
    super(`${line}:${column}: ${message}`);
    this.name = 'TomlProblem';
  }
}

type Keys = readonly string[];

const MAX_DEPTH = 64;

/** What a file has below any of the paths; undefined if nothing. */
export async function selectToml(
  text: string,
  paths: readonly Keys[],
): Promise<string | undefined> {
  const { parse, stringify, TomlError } = await lazyModules.toml();
  // Integers become bigints, so that 1.0 stays a float.
  const options = { integersAsBigInt: true, maxDepth: MAX_DEPTH } as const;
  try {
    const selected = emptyTable();
    const whole = parse(text.replace(/^\uFEFF/, ''), options);
    for (const path of paths) copyPath(whole, selected, path);
    if (Object.keys(selected).length === 0) return undefined;
    return stringify(selected, { numbersAsFloat: true, maxDepth: MAX_DEPTH });
  } catch (error) {
    if (error instanceof TomlError) {
      // The library appends the lines of the file, which may contain secrets.
      const [reason = ''] = error.message.replace('Invalid TOML document: ', '').split('\n', 1);
      throw new TomlProblem(reason, error.line, error.column);
    }
    if (error instanceof Error && /depth/.test(error.message))
      throw new TomlProblem('values are nested too deeply', 1, 1);
    throw error;
  }
}

/** Without a prototype, so that "__proto__" is a key like any other. */
function emptyTable(): TomlTable {
  return Object.create(null) as TomlTable;
}

/** If a path leads into a value that is no table, the whole value is taken. */
function copyPath(from: TomlTable, to: TomlTable, path: Keys): void {
  const [key = '', ...rest] = path;
  const value = Object.hasOwn(from, key) ? from[key] : undefined;
  if (value === undefined) return;
  if (rest.length === 0 || !isTable(value)) {
    to[key] = value;
    return;
  }
  const had = to[key];
  const inner = isTable(had) ? had : emptyTable();
  // Another path has already taken the whole table.
  if (inner === value) return;
  copyPath(value, inner, rest);
  if (Object.keys(inner).length > 0) to[key] = inner;
}

function isTable(value: TomlValue | undefined): value is TomlTable {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
  );
}
