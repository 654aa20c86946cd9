// `holdfast config`

import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Answer, Call, Command } from '../arguments/command.ts';
import { nearest } from '../arguments/nearest.ts';
import type { Words } from '../arguments/words.ts';
import type { Caller } from '../caller.ts';
import { alignedRows } from '../output/table.ts';
import type { Settings } from '../settings/configured.ts';
import { everySetting, type Setting } from '../settings/setting.ts';
import { settings } from '../settings/table.ts';
import { summaries } from '../summaries.ts';

interface Shown {
  readonly key: string;
  /** Null: there is none, and no default. */
  readonly value: string | readonly string[] | null;
  readonly from: 'option' | 'variable' | 'file' | 'default';
  /** The option, the variable, or the file and its line. */
  readonly where: string | null;
  readonly about: string;
  readonly option: string | null;
  readonly variable: string;
}

export const command: Command = {
  name: 'config',
  usage: '[KEY...] [--example]',
  summary: summaries.config,
  examples: ['holdfast config', 'holdfast config --json'],
  takes: [...Object.keys(settings), ...everySetting.map(({ key }) => key)],
  options: {
    example: { type: 'boolean', about: 'print a config.toml with every setting, commented out' },
  },
  notes: [
    'An option goes before a variable, a variable before config.toml in the state directory, and that before the',
    'default. Keepers and servers read the file when they start: "holdfast restart" starts the server again; a',
    'keeper takes new settings when it starts after "holdfast shutdown". A KEY is "serve.port", or "serve" for all of it.',
  ],
  read(call) {
    const { words, caller } = call;
    const keys = words.plain;
    const wanted = everySetting.filter(
      ({ key, section }) => keys.length === 0 || keys.includes(key) || keys.includes(section),
    );
    for (const key of keys) refuseUnknown(key, words);
    if (words.flag('example')) {
      const text = exampleOf(wanted);
      return async () => ({ result: { text: text.join('\n') }, lines: text });
    }
    const home = homeOf(call);
    return async () => answer(caller, keys.length === 0 ? [home] : [], wanted);
  },
};

function refuseUnknown(key: string, words: Words): void {
  const known = [...Object.keys(settings), ...everySetting.map((each) => each.key)];
  if (known.includes(key)) return;
  const near = nearest(key, known) ?? everySetting.find(({ name }) => name === key)?.key;
  throw words.wrong(
    `unknown setting "${key}"${near === undefined ? '' : `; did you mean "${near}"`}`,
  );
}

async function answer(
  caller: Caller,
  before: readonly Shown[],
  wanted: readonly Setting[],
): Promise<Answer> {
  const found = await caller.settings();
  const shown = [...before, ...wanted.map((setting) => show(setting, found))];
  const unknown = unknownVariables(caller.env);
  const rows = shown.map(({ key, value, where }) => [key, textOf(value), where ?? 'default']);
  return {
    result: { file: found.file, settings: shown, unknownVariables: unknown },
    lines: [
      ...alignedRows([['SETTING', 'VALUE', 'FROM'], ...rows], Infinity),
      ...unknown.map(
        ({ name, meant }) => `${name} is set, and is no setting; did you mean ${meant}?`,
      ),
    ],
  };
}

/** The one setting that the file cannot have, because it lies there. */
function homeOf({ words, caller }: Call): Shown {
  const isTyped = words.isTyped('home');
  const variable = 'HOLDFAST_HOME';
  const from = isTyped ? 'option' : caller.env[variable] ? 'variable' : 'default';
  return {
    key: 'home',
    value: caller.home,
    from,
    where: { option: '--home', variable, default: null }[from],
    about: `state directory (default ${join(homedir(), '.holdfast')})`,
    option: '--home',
    variable,
  };
}

function show({ key, section, name, row, variable, option = '' }: Setting, all: Settings): Shown {
  const found = all.find(section, name);
  const words = found?.words ?? [];
  return {
    key,
    value: found ? (row.kind === 'list' ? words : (words[0] ?? null)) : (row.usual ?? null),
    from: found?.from ?? 'default',
    where: found?.where() ?? null,
    about: row.about,
    option: option === '' ? null : option,
    variable,
  };
}

function textOf(value: Shown['value']): string {
  if (value === null) return '-';
  return typeof value === 'string' ? value : value.join(', ');
}

/** Variables that were probably meant for a setting. Others belong to other programs, such as Kubernetes. */
function unknownVariables(env: NodeJS.ProcessEnv): { name: string; meant: string }[] {
  const known = [...new Set(everySetting.map(({ variable }) => variable)), 'HOLDFAST_HOME'];
  return Object.keys(env)
    .filter((name) => name.startsWith('HOLDFAST_') && !known.includes(name))
    .flatMap((name) => {
      const meant = nearest(name, known);
      return meant === undefined || ownVariables.includes(name) ? [] : [{ name, meant }];
    });
}

/** Holdfast sets these itself, in processes. */
const ownVariables = ['HOLDFAST_PROCESS', 'HOLDFAST_MARKS'];

function exampleOf(wanted: readonly Setting[]): string[] {
  const lines: string[] = [];
  for (const section of new Set(wanted.map((each) => each.section))) {
    lines.push(...(lines.length === 0 ? [] : ['']), `[${section}]`);
    for (const { name, row } of wanted.filter((each) => each.section === section)) {
      const described = isWords(row) ? ` (default: ${row.usual})` : '';
      lines.push(`# ${row.about}${described}`, `# ${name} = ${tomlOf(row)}`);
    }
  }
  return lines;
}

/** A default that says what happens instead of naming a value. */
function isWords({ usual = '' }: Setting['row']): boolean {
  return usual.includes(' ') || usual === 'concurrently';
}

function tomlOf(row: Setting['row']): string {
  const { kind, usual, value = '', choices = [] } = row;
  if (kind === 'list') return `[${JSON.stringify(value)}]`;
  const text = usual === undefined || isWords(row) ? value || choices.join('|') : usual;
  return kind === 'boolean' || /^\d+$/.test(text) ? text : JSON.stringify(text);
}
