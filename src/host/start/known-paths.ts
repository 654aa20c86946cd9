// What a start may know of the paths it uses without waiting: local ones are looked at, of others it goes by answers that
// were asked for (path-probe.ts). What has not been asked for yet is collected, and asked for together.

import { accessSync, closeSync, constants, openSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { systemDisk } from '../../base/disk.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { LocalPaths } from './mounts.ts';
import type { PathAnswers, PathKind } from './path-probe.ts';
import { directoryProblem, refuseBlindLook } from './spawn-error.ts';

/** Scripts whose interpreter is a script: the kernel follows about as many. */
const MOST_INTERPRETERS = 5;

/** Not an error of the caller: these paths are to be asked about first. */
export class PathsUnknown extends Error {
  readonly paths: readonly string[];

  constructor(paths: readonly string[]) {
    super('paths that may not answer');
    this.name = 'PathsUnknown';
    this.paths = paths;
  }
}

export class KnownPaths {
  private readonly local: LocalPaths | undefined;
  private readonly answers: PathAnswers | undefined;
  private readonly unknown: string[] = [];
  private readonly looked = new Map<string, PathKind>();

  constructor(local: LocalPaths | undefined, answers: PathAnswers | undefined) {
    this.local = local;
    this.answers = answers;
  }

  isLocal(path: string): boolean {
    return this.local?.find(path) !== 'elsewhere';
  }

  /** Throws why a program cannot begin there. A local one is looked at only if asked: else its start tells. */
  checkDirectory(cwd: string, lookAtLocal: boolean): void {
    if (this.isLocal(cwd)) {
      const problem = lookAtLocal ? directoryProblem(cwd) : undefined;
      if (problem) throw problem;
      return;
    }
    const kind = this.answerOf(cwd);
    if (kind === undefined || kind === 'directory') return;
    if (kind === 'nothing') {
      const message = `The working directory ${cwd} does not exist or cannot be reached.`;
      throw new HoldfastError('cwd_not_found', message, { cwd });
    }
    const reason = kind === 'closed' ? 'cannot be entered' : 'is not a directory';
    const message = `The working directory ${cwd} ${reason}.`;
    throw new HoldfastError('cwd_not_usable', message, { cwd });
  }

  /** As a shell looks for a program: a folder of the PATH that may not be entered, or is none, holds nothing. */
  look(path: string): PathKind | undefined {
    const where = this.local?.find(path) ?? 'local';
    if (where === 'nothing') return where;
    if (where === 'elsewhere') return this.answerOf(path);
    const kind = this.looked.get(path) ?? lookAt(path);
    this.looked.set(path, kind);
    return kind;
  }

  /** The kernel opens the interpreter of a script while whoever starts it stands still. */
  checkInterpreter(file: string, cwd: string): void {
    let at = file;
    for (let depth = 0; depth < MOST_INTERPRETERS && this.look(at) === 'program'; depth += 1) {
      const interpreter = this.isLocal(at) ? interpreterOf(at) : undefined;
      if (interpreter === undefined) return;
      at = resolve(cwd, interpreter);
    }
  }

  /** Throws PathsUnknown when something was asked that is not known yet. */
  checkAnswered(): void {
    if (this.unknown.length > 0) throw new PathsUnknown([...new Set(this.unknown)]);
  }

  private answerOf(path: string): PathKind | undefined {
    const kind = this.answers?.get(path);
    if (kind === undefined) this.unknown.push(path);
    return kind;
  }
}

/** Of a regular file that begins with "#!". */
function interpreterOf(file: string): string | undefined {
  const head = Buffer.alloc(256);
  try {
    const fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      systemDisk.readSync(fd, head, 0);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    refuseBlindLook(error, file);
    // Executable but not readable: no script then.
    return undefined;
  }
  return /^#![ \t]*([^ \t\n\0]+)/.exec(head.toString('utf8'))?.[1];
}

function lookAt(path: string): PathKind {
  try {
    // Without an exception for what is not there: most folders of a PATH do not hold the program.
    const found = statSync(path, { throwIfNoEntry: false });
    if (!found) return 'nothing';
    if (!found.isFile()) return 'other';
    accessSync(path, constants.X_OK);
    return 'program';
  } catch (error) {
    refuseBlindLook(error, path);
    return error instanceof Error && 'syscall' in error && error.syscall === 'access'
      ? 'other'
      : 'nothing';
  }
}
