// What a start knows about its paths without waiting: local paths are checked directly, others only through answers of
// a probe (path-probe.ts). Unknown paths are collected and probed together.

import { accessSync, closeSync, constants, openSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { systemDisk } from '../../base/disk.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { LocalPaths } from './mounts.ts';
import type { PathAnswers, PathKind } from './path-probe.ts';
import { directoryProblem, refuseBlindLook } from './spawn-error.ts';

/** Interpreters that are scripts themselves: about as many as the kernel follows. */
const MOST_INTERPRETERS = 5;

/** Not an error of the caller: these paths must be probed first. */
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

  /**
   * Throws the reason why a program cannot start in this directory. A local one is checked only on request; otherwise
   * the spawn reports it.
   */
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

  /** Like a shell: a PATH entry that is not an accessible directory is skipped. */
  look(path: string): PathKind | undefined {
    const where = this.local?.find(path) ?? 'local';
    if (where === 'nothing') return where;
    if (where === 'elsewhere') return this.answerOf(path);
    const kind = this.looked.get(path) ?? lookAt(path);
    this.looked.set(path, kind);
    return kind;
  }

  /** The kernel opens a script's interpreter during the spawn, which would block. */
  checkInterpreter(file: string, cwd: string): void {
    let at = file;
    for (let depth = 0; depth < MOST_INTERPRETERS && this.look(at) === 'program'; depth += 1) {
      const interpreter = this.isLocal(at) ? interpreterOf(at) : undefined;
      if (interpreter === undefined) return;
      at = resolve(cwd, interpreter);
    }
  }

  /** Throws PathsUnknown if a path is not known yet. */
  checkAnswered(): void {
    if (this.unknown.length > 0) throw new PathsUnknown([...new Set(this.unknown)]);
  }

  private answerOf(path: string): PathKind | undefined {
    const kind = this.answers?.get(path);
    if (kind === undefined) this.unknown.push(path);
    return kind;
  }
}

/** The interpreter of a regular file that begins with "#!". */
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
    // Executable but not readable: it cannot be a script.
    return undefined;
  }
  return /^#![ \t]*([^ \t\n\0]+)/.exec(head.toString('utf8'))?.[1];
}

function lookAt(path: string): PathKind {
  try {
    // Without exceptions for missing files: most PATH entries do not hold the program.
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
