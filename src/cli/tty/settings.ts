// What the flags of every command, the environment and agent-tty's config.json say, in this order. All of it is checked
// before anything is done.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TtyError } from './envelope.ts';

export interface Settings {
  readonly logLevel: LogLevel;
  /** The theme of pictures, where a command names none. */
  readonly profile: string;
  readonly shell?: string | undefined;
  readonly term?: string | undefined;
  readonly cols?: number | undefined;
  readonly rows?: number | undefined;
  readonly idleTimeoutMs?: number | undefined;
}

type LogLevel = (typeof LOG_LEVELS)[number];

export interface SettingsSource {
  readonly env: NodeJS.ProcessEnv;
  /** The value of a flag that every command takes. */
  readonly flag: (name: string) => string | undefined;
  /** Where config.json may be; undefined when none is read. */
  readonly folder: string | undefined;
  /** Names that --renderer takes. */
  readonly renderers: readonly string[];
}

const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
/** agent-tty's; one emulator stands behind all of them. */
export const PEER_RENDERERS: readonly string[] = ['ghostty-web', 'libghostty-vt'];
export const RENDERERS: readonly string[] = [...PEER_RENDERERS, 'xterm-headless'];
const USUAL_PROFILE = 'reference-dark';

/** Whether a value of config.json is one; what is told when it is not. */
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

/** Wrong flags first, then the environment, then the file. */
export function settingsFrom({ env, flag, folder, renderers }: SettingsSource): Settings {
  const home = flag('--home');
  if (home !== undefined && !home.startsWith('/'))
    throw wrong('--home must be an absolute path.', '--home');
  const timeout = flag('--timeout-ms');
  if (timeout !== undefined && !/^[1-9]\d{0,14}$/.test(timeout))
    throw wrong('--timeout-ms must be a positive number of milliseconds.', '--timeout-ms');
  const level = logLevelOf(flag('--log-level') ?? (env['AGENT_TTY_LOG_LEVEL'] || undefined));
  const renderer = flag('--renderer') ?? (env['AGENT_TTY_RENDERER'] || undefined);
  if (renderer !== undefined && !renderers.includes(renderer))
    throw wrong(`Renderer must be one of: ${renderers.join(', ')}.`, '--renderer');
  const config = folder === undefined ? {} : readConfig(join(folder, 'config.json'));
  return {
    logLevel: level ?? config.logLevel ?? 'info',
    profile: (env['AGENT_TTY_PROFILE'] || config.defaultProfile) ?? USUAL_PROFILE,
    shell: config.defaultShell,
    term: config.defaultTerm,
    cols: config.defaultCols,
    rows: config.defaultRows,
    idleTimeoutMs: config.idleTimeoutMs,
  };
}

function logLevelOf(given: string | undefined): LogLevel | undefined {
  const level = LOG_LEVELS.find((each) => each === given);
  if (given !== undefined && level === undefined)
    throw wrong('Log level must be one of debug, info, warn, or error.', '--log-level');
  return level;
}

function wrong(problem: string, flag: string): TtyError {
  return new TtyError('INVALID_INPUT', problem, { flag });
}

/** A file that cannot be understood is told, not passed over: what it was to change would go unnoticed. */
function readConfig(file: string): Config {
  let content: string;
  try {
    content = readFileSync(file, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return {};
    throw new TtyError('INTERNAL_ERROR', `${file} cannot be read: ${reasonOf(error)}`, { file });
  }
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch (error) {
    const problem = `${file} contains invalid JSON: ${reasonOf(error)}`;
    throw new TtyError('INTERNAL_ERROR', problem, { file });
  }
  const problem = problemOf(value);
  if (problem !== undefined) throw new TtyError('INTERNAL_ERROR', `${file}: ${problem}`, { file });
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
