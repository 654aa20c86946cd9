// From a start request to a plan with nothing left to decide: which file, where, with what. Whatever can be known to be
// wrong is found here, and named, before anything is started.

import { accessSync, constants, statSync, type Stats } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { HoldfastError } from '../protocol/errors.ts';
import type { StartSpec } from '../protocol/operations.ts';
import type { LaunchPlan, TerminalFacts } from '../protocol/process.ts';
import {
  childEnvironment,
  commonVariables,
  inheritable,
  ownVariables,
  type CommonVariables,
  type Inheritable,
  type Variables,
} from './environment.ts';
import type { ShellMarks } from './shell-marks.ts';
import { directoryProblem } from './spawn-error.ts';

export interface Surroundings {
  readonly env: Variables;
  readonly cwd: string;
  readonly home: string;
  /** Makes shells mark their commands. */
  readonly shells?: ShellMarks;
}

/** The surroundings, with what every start would otherwise work out again. */
export interface StartSurroundings extends Surroundings {
  readonly inheritable: Inheritable;
  readonly common: CommonVariables;
}

export function startSurroundings(surroundings: Surroundings): StartSurroundings {
  const base = inheritable(surroundings.env);
  return { ...surroundings, inheritable: base, common: commonVariables(base) };
}

/** Where programs are looked for when the child has no PATH: what shells fall back to. */
const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin';
/** Where the shell lies on every Unix; not looked for when PATH leads there. */
export const SHELL = '/bin/sh';
const SHELL_FOLDER = /(?:^|:)(?:\/usr)?\/bin(?::|$)/;
const DEFAULT_SIZE = { cols: 80, rows: 24 };

export function launchPlan(
  spec: StartSpec,
  surroundings: StartSurroundings,
  marker: string,
): LaunchPlan {
  const { common } = surroundings;
  const own = ownVariables(common, spec, marker);
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
  const file =
    spec.command !== undefined && SHELL_FOLDER.test(path)
      ? SHELL
      : findProgram(argv[0] ?? '', usable(cwd), path);
  const marked =
    streams === 'pty' && spec.marks === true ? surroundings.shells?.apply(argv, env) : undefined;
  return {
    file,
    argv: marked?.argv ?? (spec.arg0 === undefined ? argv : [spec.arg0, ...argv.slice(1)]),
    ...(marked && { shownArgv: argv, nonce: marked.nonce }),
    ...(streams === 'pty' && {
      terminal: terminalFacts(spec, env.get('TERM') ?? '', marked?.kind),
    }),
    env: Array.from(env, ([name, value]) => `${name}=${value}`),
    ...(own && { commonEnv: common.strings }),
    cwd,
    streams,
    stdin: streams === 'pty' ? 'pipe' : (spec.stdin ?? 'none'),
    size: spec.size ?? DEFAULT_SIZE,
  };
}

function terminalFacts(
  { idleTimeoutMs = 0 }: StartSpec,
  term: string,
  marks: string | undefined,
): TerminalFacts {
  return {
    term,
    ...(marks !== undefined && { marks }),
    ...(idleTimeoutMs > 0 && { idleTimeoutMs }),
  };
}

function workingDirectory(wanted: string | undefined, surroundings: Surroundings): string {
  if (wanted === undefined) return surroundings.cwd;
  return resolve(surroundings.cwd, expandHome(wanted, surroundings.home));
}

/** Told before a program that is looked for there and not found. The shell is not: its start tells. */
function usable(cwd: string): string {
  const problem = directoryProblem(cwd);
  if (problem) throw problem;
  return cwd;
}

function expandHome(path: string, home: string): string {
  if (path === '~') return home;
  return path.startsWith('~/') ? join(home, path.slice(2)) : path;
}

function findProgram(name: string, cwd: string, searchPath: string): string {
  if (name === '')
    throw new HoldfastError('invalid_input', 'start: "argv.0" is empty.', { field: 'argv.0' });
  if (name.includes('/')) return isAbsolute(name) ? name : resolve(cwd, name);
  let refused: string | undefined;
  for (const folder of searchPath.split(':')) {
    const candidate = isAbsolute(folder) ? `${folder}/${name}` : resolve(cwd, folder, name);
    const found = look(candidate);
    if (!found) continue;
    if (found.isFile() && mayExecute(candidate)) return candidate;
    refused ??= candidate;
  }
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

/** As a shell looks: a folder of the PATH that may not be entered, or is none, holds nothing. */
function look(path: string): Stats | undefined {
  try {
    // Without an exception for what is not there: most folders of a PATH do not hold the program.
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function mayExecute(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
