// What a skill says of itself: the front matter of SKILL.md, and agents/openai.yaml beside it.

import { lazyModules } from '../../lazy-modules.ts';
import { isMap } from './root-scan.ts';

/** More than a person writes. The time of a hostile text grows with the square of its length: this one takes 0.2 s. */
const MAX_YAML_LENGTH = 16 * 1024;
/** Brackets, and dashes in a row. The parser recurses, and V8 can abort the process when its stack ends in a pattern. */
const MAX_BRACKETS = 256;
const MANY_DASHES = /(?:[-?:][ \t]+){16}/;
/** The limits of codex's server, in characters. */
const MAX_NAME = 64;
const MAX_WORD = 64;
const MAX_TEXT = 1024;

type Table = Readonly<Record<string, unknown>>;

export interface FrontMatter {
  /** Undefined: the skill has the name of its folder. */
  readonly name: string | undefined;
  readonly description: string;
  readonly shortDescription: string | null;
}

/** Undefined if the file has none, or one that cannot be used. */
export async function readFrontMatter(text: string): Promise<FrontMatter | undefined> {
  const yaml = frontMatterOf(text);
  if (yaml === undefined) return undefined;
  return fieldsOf(await parseYaml(yaml)) ?? fieldsOf(await parseYaml(quotePlainValues(yaml)));
}

function frontMatterOf(text: string): string | undefined {
  const [first, ...lines] = text.split(/\r?\n/);
  const end = lines.findIndex((line) => line.trim() === '---');
  if (first?.trim() !== '---' || end < 0) return undefined;
  const yaml = lines.slice(0, end).join('\n');
  return yaml.length > MAX_YAML_LENGTH ? undefined : yaml;
}

function fieldsOf(yaml: unknown): FrontMatter | undefined {
  if (!isMap(yaml)) return undefined;
  const { name, description, metadata = {} } = yaml;
  if (!isMap(metadata)) return undefined;
  const short = metadata['short-description'];
  const values = [name, description, short];
  if (!values.every((value) => value === undefined || typeof value === 'string')) return undefined;
  const [called, about] = [lineOf(name), lineOf(description)];
  if (about === undefined || (called?.length ?? 0) > MAX_NAME) return undefined;
  return { name: called, description: about, shortDescription: lineOf(short) ?? null };
}

/**
 * People write "description: use when: x". As YAML this is invalid; codex reads it as one text. A value that YAML would
 * take for structure is quoted.
 */
function quotePlainValues(yaml: string): string {
  return yaml.replaceAll(
    /^([ \t]*[\w-]+:[ \t]+)([^\s"'|>&*!%#[].*)$/gm,
    (line, key: string, value: string) => {
      const said = value.replace(/\s#.*$/, '').trimEnd();
      return /^[@`{]|: /.test(said) ? `${key}${JSON.stringify(said)}` : line;
    },
  );
}

export interface SkillSettings {
  readonly dependencies: { readonly tools: readonly Table[] } | null;
  readonly policy: { readonly allowImplicitInvocation: boolean | null; products: string[] } | null;
}

const NO_SETTINGS: SkillSettings = { dependencies: null, policy: null };
const PRODUCTS = ['chatgpt', 'codex', 'atlas'];

/** A file that is not as described sets nothing: codex says no word of it either. */
export async function readSkillSettings(text: string): Promise<SkillSettings> {
  const yaml = await parseYaml(text);
  if (!isMap(yaml)) return NO_SETTINGS;
  const { interface: shown, dependencies, policy } = yaml;
  if (shown !== undefined && !isMap(shown)) return NO_SETTINGS;
  const tools = readTools(dependencies);
  const decided = readPolicy(policy);
  if (tools === 'invalid' || decided === 'invalid') return NO_SETTINGS;
  return { dependencies: tools.length === 0 ? null : { tools }, policy: decided };
}

function readTools(dependencies: unknown): Table[] | 'invalid' {
  if (dependencies === undefined) return [];
  if (!isMap(dependencies)) return 'invalid';
  const { tools = [] } = dependencies;
  if (!Array.isArray(tools) || !tools.every(isMap)) return 'invalid';
  const read: Table[] = [];
  for (const tool of tools as Table[]) {
    const { oauth = {} } = tool;
    if (!isMap(oauth)) return 'invalid';
    const port = portOf(oauth['callback_port'] ?? oauth['callbackPort']);
    if (port === 'invalid') return 'invalid';
    const word = (name: string, most: number): string | undefined => {
      const value = lineOf(tool[name]);
      return value === undefined || value.length > most ? undefined : value;
    };
    const [type, value] = [word('type', MAX_WORD), word('value', MAX_TEXT)];
    if (type === undefined || value === undefined) continue;
    read.push({
      type,
      value,
      description: word('description', MAX_TEXT) ?? null,
      transport: word('transport', MAX_WORD) ?? null,
      command: word('command', MAX_TEXT) ?? null,
      url: word('url', MAX_TEXT) ?? null,
      oauthCallbackPort: port,
    });
  }
  return read;
}

function portOf(value: unknown): number | null | 'invalid' {
  if (value === undefined) return null;
  const port =
    typeof value === 'string' && /^(?:\d+|0x[0-9a-f]+)$/i.test(value) ? Number(value) : -1;
  return port >= 0 && port <= 65_535 ? port : 'invalid';
}

function readPolicy(policy: unknown): SkillSettings['policy'] | 'invalid' {
  if (policy === undefined) return null;
  if (!isMap(policy)) return 'invalid';
  const { allow_implicit_invocation: allowed, products = [] } = policy;
  const implicit = allowed === undefined ? null : truthOf(allowed);
  if (implicit === undefined || !Array.isArray(products)) return 'invalid';
  const named = products.map((product) =>
    PRODUCTS.find((known) => product === known || product === known.toUpperCase()),
  );
  if (named.includes(undefined)) return 'invalid';
  return { allowImplicitInvocation: implicit, products: named as string[] };
}

function truthOf(value: unknown): boolean | undefined {
  if (typeof value !== 'string' || !/^(?:true|false)$/i.test(value)) return undefined;
  return value.toLowerCase() === 'true';
}

/** Runs of white space become one space; undefined if nothing else is there. */
function lineOf(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const line = value.split(/\s+/).filter(Boolean).join(' ');
  return line === '' ? undefined : line;
}

/** Every scalar is the text that was written, so that a version 1.50 stays one; null is undefined. */
async function parseYaml(text: string): Promise<unknown> {
  const brackets = text.replaceAll(/[^[{]+/g, '').length;
  if (text.length > MAX_YAML_LENGTH || brackets > MAX_BRACKETS || MANY_DASHES.test(text))
    return undefined;
  const { parseDocument } = await lazyModules.yaml();
  const document = parseDocument(text, {
    schema: 'failsafe',
    prettyErrors: false,
    logLevel: 'silent',
  });
  if (document.errors.length > 0) return undefined;
  try {
    return document.toJS({ reviver: (_, value: unknown) => (isNull(value) ? undefined : value) });
  } catch (error) {
    // An alias of nothing, or too many of them.
    if (error instanceof ReferenceError) return undefined;
    throw error;
  }
}

function isNull(value: unknown): boolean {
  return value === null || (typeof value === 'string' && /^(?:~|null|Null|NULL|)$/.test(value));
}
