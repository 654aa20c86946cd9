// The settings of a `tty` command: from an option, else the environment, else agent-tty's config.json. All of them are
// checked before the command acts.

import { readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { usualHome } from '../caller.ts';
import { TtyError } from './envelope.ts';

export interface Settings {
  /** The state directory; undefined for the default one. */
  readonly home: string | undefined;
  readonly logLevel: LogLevel;
  /** The theme of pictures, where a command names none. */
  readonly profile: string;
  readonly shell?: string | undefined;
  readonly term?: string | undefined;
  readonly cols?: number | undefined;
  readonly rows?: number | undefined;
  readonly idleTimeoutMs?: number | undefined;
  /** The names under which answers report what rendered a screen and what painted a picture. */
  readonly renderers: { readonly screen: string; readonly picture: string };
}

type LogLevel = (typeof LOG_LEVELS)[number];

export interface SettingsSource {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** The state directory when no option names one. */
  readonly home: string | undefined;
  /** config.json is read only for agent-tty's scripts. */
  readonly isPeer: boolean;
  /** The value of an option that every command takes. */
  readonly option: (name: string) => string | undefined;
}

/** A setting is wrong: no command is begun. */
export class SettingsError extends TtyError {}

const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
/** agent-tty's default for screens, and the only one that paints pictures. */
const [PEER_PICTURES, PEER_SCREENS] = ['ghostty-web', 'libghostty-vt'];
/** agent-tty's names, to which its scripts compare; one emulator renders for all of them. */
export const PEER_RENDERERS: readonly string[] = [PEER_PICTURES, PEER_SCREENS];
const RENDERERS: readonly string[] = [...PEER_RENDERERS, 'xterm-headless'];
const USUAL_PROFILE = 'reference-dark';

/** Checks one value of config.json; `meant` completes "must be ...". */
interface Key {
  readonly takes: (value: unknown) => boolean;
  readonly meant: string;
}

const oneOf = (choices: readonly string[]): Key => ({
  takes: (value) => choices.includes(value as string),
  meant: `one of ${choices.join(', ')}`,
});
const text: Key = { takes: (value) => typeof value === 'string' && value !== '', meant: 'a text' };
const whole = (least: number, most: number): Key => ({
  takes: (value) => Number.isInteger(value) && Number(value) >= least && Number(value) <= most,
  meant: `a whole number from ${least} to ${most}`,
});

const configKeys: Readonly<Record<keyof Config, Key>> = {
  logLevel: oneOf(LOG_LEVELS),
  defaultProfile: text,
  defaultRenderer: oneOf(RENDERERS),
  defaultShell: text,
  defaultTerm: text,
  defaultCols: whole(1, 1000),
  defaultRows: whole(1, 1000),
  idleTimeoutMs: whole(0, Number.MAX_SAFE_INTEGER),
};

interface Config {
  readonly logLevel?: LogLevel;
  readonly defaultProfile?: string;
  readonly defaultRenderer?: string;
  readonly defaultShell?: string;
  readonly defaultTerm?: string;
  readonly defaultCols?: number;
  readonly defaultRows?: number;
  readonly idleTimeoutMs?: number;
}

export function settingsFrom({ env, cwd, home: usual, isPeer, option }: SettingsSource): Settings {
  const given = option('home');
  if (given !== undefined && !given.startsWith('/'))
    throw wrong('--home must be an absolute path.', '--home');
  const timeout = option('timeout-ms');
  if (timeout !== undefined && !/^[1-9]\d{0,14}$/.test(timeout))
    throw wrong('--timeout-ms must be a positive number of milliseconds.', '--timeout-ms');
  const level = logLevelOf(option('log-level') ?? (env['AGENT_TTY_LOG_LEVEL'] || undefined));
  const renderer = option('renderer') ?? (env['AGENT_TTY_RENDERER'] || undefined);
  const renderers = isPeer ? PEER_RENDERERS : RENDERERS;
  if (renderer !== undefined && !renderers.includes(renderer))
    throw wrong(`Renderer must be one of: ${renderers.join(', ')}.`, '--renderer');
  const named = given ?? (usual === undefined ? undefined : resolve(cwd, usual));
  const config = isPeer ? readConfig(join(named ?? usualHome(env), 'config.json')) : {};
  return {
    home: isPeer && named !== undefined ? lockedFolder(named) : named,
    logLevel: level ?? config.logLevel ?? 'info',
    profile: (env['AGENT_TTY_PROFILE'] || config.defaultProfile) ?? USUAL_PROFILE,
    shell: config.defaultShell,
    term: config.defaultTerm,
    cols: config.defaultCols,
    rows: config.defaultRows,
    idleTimeoutMs: config.idleTimeoutMs,
    renderers: isPeer
      ? { screen: renderer ?? config.defaultRenderer ?? PEER_SCREENS, picture: PEER_PICTURES }
      : { screen: 'xterm-headless', picture: 'holdfast' },
  };
}

/** A home that others may read gets a private folder inside. One that others may write to is refused when it is opened. */
function lockedFolder(home: string): string {
  const found = statSync(home, { throwIfNoEntry: false });
  const isOpen = found?.isDirectory() === true && (found.mode & 0o055) !== 0;
  return isOpen && (found.mode & 0o022) === 0 ? join(home, 'holdfast') : home;
}

function logLevelOf(given: string | undefined): LogLevel | undefined {
  const level = LOG_LEVELS.find((each) => each === given);
  if (given !== undefined && level === undefined)
    throw wrong('Log level must be one of debug, info, warn, or error.', '--log-level');
  return level;
}

function wrong(problem: string, flag: string): SettingsError {
  return new SettingsError('INVALID_INPUT', problem, { flag });
}

/** A file that cannot be parsed is an error: otherwise a setting would be missing without a word. */
function readConfig(file: string): Config {
  let content: string;
  try {
    content = readFileSync(file, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return {};
    throw new SettingsError('INTERNAL_ERROR', `${file} cannot be read: ${reasonOf(error)}`, {
      file,
    });
  }
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch (error) {
    const problem = `${file} contains invalid JSON: ${reasonOf(error)}`;
    throw new SettingsError('INTERNAL_ERROR', problem, { file });
  }
  const problem = problemOf(value);
  if (problem !== undefined)
    throw new SettingsError('INTERNAL_ERROR', `${file}: ${problem}`, { file });
  return value as Config;
}

function problemOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return 'it must be a JSON object.';
  for (const [name, given] of Object.entries(value)) {
    const key = Object.hasOwn(configKeys, name) ? configKeys[name as keyof Config] : undefined;
    if (!key) return `there is no setting "${name.slice(0, 40)}".`;
    if (!key.takes(given)) return `${name} must be ${key.meant}.`;
  }
  return undefined;
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
