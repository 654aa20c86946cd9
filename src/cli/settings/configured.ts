// The settings of a home as its variables and its config.toml have them. A variable goes before the file; an option of the
// command line goes before both.

import { HoldfastError } from '../../protocol/errors.ts';
import { nearest } from '../arguments/nearest.ts';
import { booleanOf, bytesOf, countOf, durationOf, WrongValue } from '../arguments/values.ts';
import { configPath, readConfig, readConfigText, type FileValue } from './config-file.ts';
import { checkValue, everySetting, wordOf, type Setting } from './setting.ts';
import { LIMITS_VARIABLE, type Section } from './table.ts';

export interface Configured {
  /** As the words of an option. */
  readonly words: readonly string[];
  readonly from: 'variable' | 'file';
  /** "HOLDFAST_IDLE", or the file and its line. */
  readonly where: () => string;
}

export class Settings {
  readonly file: string;
  private readonly found: ReadonlyMap<string, Configured>;

  private constructor(file: string, found: ReadonlyMap<string, Configured>) {
    this.file = file;
    this.found = found;
  }

  /** Throws for any setting that makes no sense, of whichever command. */
  static async load(home: string, env: NodeJS.ProcessEnv): Promise<Settings> {
    const file = configPath(home);
    const text = readConfigText(file);
    const values: ReadonlyMap<string, FileValue> =
      text === undefined
        ? new Map()
        : readConfig({ file, text }, (await import('smol-toml')).parse);
    const limits = limitsIn(env);
    const found = new Map<string, Configured>();
    for (const setting of everySetting) {
      const words =
        setting.section === 'limits' ? limits.get(setting.name) : variableWords(setting, env);
      const inFile = values.get(setting.key);
      const where = (): string => setting.variable;
      if (words) found.set(setting.key, { words, from: 'variable', where });
      else if (inFile) found.set(setting.key, { words: inFile.words, ...placeOf(file, inFile) });
    }
    return new Settings(file, found);
  }

  find(section: Section, name: string): Configured | undefined {
    return this.found.get(`${section}.${name}`);
  }

  /** The last word of a setting. */
  text(section: Section, name: string): string | undefined {
    return this.find(section, name)?.words.at(-1);
  }

  flag(section: Section, name: string): boolean | undefined {
    const text = this.text(section, name);
    return text === undefined ? undefined : booleanOf(text);
  }
}

function placeOf(file: string, { line }: FileValue): Pick<Configured, 'from' | 'where'> {
  const where = (): string => [file, line()].filter((part) => part !== undefined).join(':');
  return { from: 'file', where };
}

function wrong(problem: string): HoldfastError {
  return new HoldfastError('invalid_input', problem, {
    remedy: 'Correct or unset the variable; "holdfast config" shows where each value comes from.',
  });
}

/** What Kubernetes and Docker set for a service of such a name: "tcp://10.0.0.1:80". */
const ANOTHERS_PORT = /^(?:tcp|udp|sctp):\/\//;

function variableWords({ row, variable }: Setting, env: NodeJS.ProcessEnv): string[] | undefined {
  const text = env[variable];
  if (!text || (row.kind === 'count' && ANOTHERS_PORT.test(text))) return undefined;
  const words = row.kind === 'list' ? text.split(',').map((word) => word.trim()) : [text];
  for (const word of words) check(row, word, `${variable} "${word}"`);
  return words;
}

function check(row: Setting['row'], word: string, subject: string): void {
  try {
    checkValue(row, word);
  } catch (error) {
    if (error instanceof WrongValue) throw wrong(`${subject} ${error.message}.`);
    throw error;
  }
}

function limitsIn(env: NodeJS.ProcessEnv): ReadonlyMap<string, string[]> {
  const text = env[LIMITS_VARIABLE];
  if (!text) return new Map();
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    // Reported below.
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw wrong(`${LIMITS_VARIABLE} is not a JSON object such as {"totalBytes":1073741824}.`);
  const rows = everySetting.filter(({ section }) => section === 'limits');
  const limits = Object.entries(given).map(([name, value]): [string, string[]] => {
    const row = rows.find((each) => each.name === name)?.row;
    if (!row) throw wrong(`${LIMITS_VARIABLE}: ${unknownLimit(name, rows)}`);
    const word = wordOf(row, value);
    check(row, word, `${LIMITS_VARIABLE}: ${name} "${word}"`);
    return [name, [word]];
  });
  return new Map(limits);
}

function unknownLimit(name: string, rows: readonly Setting[]): string {
  const near = nearest(
    name,
    rows.map((each) => each.name),
  );
  return `there is no limit "${name}"${near === undefined ? '.' : `; did you mean "${near}"?`}`;
}

/** The arguments of a keeper with these settings. */
export function keeperArguments(given: Settings): string[] {
  const idle = given.text('keeper', 'idle');
  const bubblewrap = given.text('keeper', 'bubblewrap');
  const limits = everySetting
    .filter(({ section }) => section === 'limits')
    .flatMap(({ name, row }) => {
      const text = given.text('limits', name);
      return text === undefined ? [] : [[name, limitOf(row, text)] as const];
    });
  return [
    ...(idle === undefined ? [] : ['--idle-ms', String(durationOf(idle))]),
    ...(given.flag('keeper', 'cgroups') === false ? ['--no-cgroups'] : []),
    ...(bubblewrap === undefined ? [] : ['--bubblewrap', bubblewrap]),
    ...['level', 'format'].flatMap((name) => {
      const text = given.text('log', name);
      return text === undefined ? [] : [name === 'level' ? '--log' : '--log-format', text];
    }),
    ...(limits.length === 0 ? [] : ['--limits', JSON.stringify(Object.fromEntries(limits))]),
  ];
}

function limitOf({ kind }: Setting['row'], text: string): number {
  if (kind === 'bytes') return bytesOf(text);
  return kind === 'duration' ? durationOf(text) : countOf(text);
}
