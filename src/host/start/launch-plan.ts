// Turns a start request into a launch plan: which file, where, with what. Problems that can be known before the start
// are found and named here.

import { isAbsolute, join, resolve } from 'node:path';
import { HoldfastError } from '../../protocol/errors.ts';
import { MAX_FACTS_BYTES } from '../../protocol/limits.ts';
import type { StartSpec } from '../../protocol/operations.ts';
import type { LaunchPlan, TerminalFacts } from '../../protocol/process.ts';
import {
  childEnvironment,
  CommonVariables,
  inheritable,
  ownVariables,
  type Inheritable,
  type Variables,
} from './environment.ts';
import { KnownPaths } from './known-paths.ts';
import type { Mounts } from './mounts.ts';
import type { PathAnswers } from './path-probe.ts';
import type { ShellMarks } from '../terminal/shell-marks.ts';

export interface InheritedEnvironment {
  readonly env: Variables;
  readonly cwd: string;
  readonly home: string;
  /** Makes shells mark their commands. */
  readonly shells?: ShellMarks;
  /** Tells which paths may hang; without it all count as local. */
  readonly mounts?: Mounts;
}

/** The inherited environment, with what every start needs precomputed. */
export interface StartSurroundings extends InheritedEnvironment {
  readonly inheritable: Inheritable;
  readonly common: CommonVariables;
}

export function startSurroundings(surroundings: InheritedEnvironment): StartSurroundings {
  const base = inheritable(surroundings.env);
  return { ...surroundings, inheritable: base, common: new CommonVariables(base) };
}

/** Search path for a child without PATH, as shells use it. */
const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin';
/** The shell on every Unix; not searched in the PATH. */
export const SHELL = '/bin/sh';
const SHELL_FOLDER = /(?:^|:)(?:\/usr)?\/bin(?::|$)/;
const DEFAULT_SIZE = { cols: 80, rows: 24 };

/** Throws PathsUnknown for paths that may hang and are not among `answers`. */
export function launchPlan(
  spec: StartSpec,
  surroundings: StartSurroundings,
  marker: string,
  answers?: PathAnswers,
): LaunchPlan {
  const { common } = surroundings;
  const own = ownVariables(spec, marker);
  const env = own ?? childEnvironment(surroundings.inheritable, spec, marker);
  const cwd = workingDirectory(spec.cwd, surroundings);
  const argv = spec.command === undefined ? spec.argv : ['sh', '-c', spec.command];
  if (argv === undefined || (spec.command !== undefined && spec.argv !== undefined)) {
    throw new HoldfastError('invalid_input', 'start: give either "command" or "argv".', {
      field: 'command',
    });
  }
  const streams = spec.streams ?? 'merged';
  const path = env.get('PATH') ?? (own && common.values.get('PATH')) ?? DEFAULT_PATH;
  const paths = new KnownPaths(surroundings.mounts?.look(), answers);
  const shell = spec.command !== undefined && SHELL_FOLDER.test(path);
  // Checked first: a missing directory is the better error than a missing program in it.
  paths.checkDirectory(cwd, !shell);
  const file = shell ? SHELL : findProgram(argv[0] ?? '', cwd, path, paths);
  if (!shell) paths.checkInterpreter(file, cwd);
  paths.checkAnswered();
  const shells = spec.marks === true ? surroundings.shells : undefined;
  const marked = streams === 'pty' ? shells?.apply(argv, env) : undefined;
  shells?.tellStatuses(argv, env);
  return {
    file,
    argv: marked?.argv ?? (spec.arg0 === undefined ? argv : [spec.arg0, ...argv.slice(1)]),
    ...(marked && { shownArgv: argv, nonce: marked.nonce }),
    ...(streams === 'pty' && {
      terminal: terminalFacts(spec, env.get('TERM') ?? '', marked?.kind),
    }),
    env: Array.from(env, ([name, value]) => `${name}=${value}`),
    ...(own && { commonEnv: common.stringsBeside(own) }),
    cwd,
    ...(!(paths.isLocal(cwd) && (shell || paths.isLocal(file))) && { remote: true }),
    streams,
    stdin: streams === 'pty' ? 'pipe' : (spec.stdin ?? 'none'),
    size: spec.size ?? DEFAULT_SIZE,
  };
}

function terminalFacts(
  { idleTimeoutMs = 0, marks: opened }: StartSpec,
  term: string,
  marks: string | undefined,
): TerminalFacts {
  return {
    term,
    ...(marks !== undefined && { marks }),
    ...(idleTimeoutMs > 0 && { idleTimeoutMs }),
    // Opened as a terminal. A client that only asked for streams "pty" may be a terminal that answers itself.
    ...(opened !== undefined && { queries: 'keeper' as const }),
  };
}

function workingDirectory(wanted: string | undefined, surroundings: InheritedEnvironment): string {
  if (wanted === undefined) return surroundings.cwd;
  return resolve(surroundings.cwd, expandHome(wanted, surroundings.home));
}

function expandHome(path: string, home: string): string {
  if (path === '~') return home;
  return path.startsWith('~/') ? join(home, path.slice(2)) : path;
}

function findProgram(name: string, cwd: string, searchPath: string, paths: KnownPaths): string {
  if (name === '')
    throw new HoldfastError('invalid_input', 'start: "argv.0" is empty.', { field: 'argv.0' });
  if (name.includes('/')) {
    const file = isAbsolute(name) ? name : resolve(cwd, name);
    // The spawn reports what is wrong with it.
    return file;
  }
  let refused: string | undefined;
  for (const folder of searchPath.split(':')) {
    const candidate = isAbsolute(folder) ? `${folder}/${name}` : resolve(cwd, folder, name);
    const found = paths.look(candidate);
    if (found === 'program') return candidate;
    if (found !== 'nothing') refused ??= candidate;
  }
  paths.checkAnswered();
  if (refused) {
    throw new HoldfastError('program_not_executable', `${refused} is not an executable file.`, {
      program: name,
    });
  }
  throw new HoldfastError(
    'program_not_found',
    `The program "${name}" is in no folder of its PATH.`,
    { program: name },
  );
}

/** Throws `arguments_too_long` if the start could not be recorded. */
export function checkRecordable(spec: StartSpec, { argv, cwd }: LaunchPlan): void {
  const { command = argv.join(' '), labels } = spec;
  let chars = command.length;
  for (const argument of argv) chars += argument.length;
  // In JSON a character takes at most six bytes; labels and paths are small in comparison.
  if (chars * 6 < MAX_FACTS_BYTES / 2) return;
  const bytes = Buffer.byteLength(JSON.stringify([command, argv, labels, cwd]));
  if (bytes <= MAX_FACTS_BYTES) return;
  const problem = `The command line takes ${bytes} bytes in the journal; the limit is ${MAX_FACTS_BYTES}.`;
  throw new HoldfastError('arguments_too_long', problem, { bytes });
}
