// Explains why a program could not be started: checks a launch plan before, and an errno after the spawn.

import { accessSync, constants, existsSync, statSync } from 'node:fs';

import { errnoOf } from '../../base/disk.ts';
import { type ErrorCode, HoldfastError } from '../../protocol/errors.ts';
import type { LaunchPlan } from '../../protocol/process.ts';
import { PosixError } from '../../system/posix-library.ts';

// Linux MAX_ARG_STRLEN: 32 pages of 4 KiB for one argument or variable, with its NUL byte.
const maxStringBytes = 131_072;

/** Refuses what the kernel would truncate (NUL bytes), or refuse without naming the part. */
export function checkPlan(plan: LaunchPlan): void {
  if (plan.argv.length === 0) throw new HoldfastError('invalid_input', 'argv is empty');
  checkString('file', plan.file);
  checkString('cwd', plan.cwd);
  for (const [index, value] of plan.argv.entries()) checkString(`argv[${index}]`, value);
  for (const entry of plan.env) {
    if (isSuspicious(entry)) checkString(variableName(entry), entry);
  }
}

function isSuspicious(value: string): boolean {
  // One UTF-16 unit is at most three bytes of UTF-8.
  return value.length * 3 >= maxStringBytes || value.includes('\0');
}

function checkString(field: string, value: string): void {
  if (value.includes('\0')) {
    throw new HoldfastError('invalid_input', `${field} contains a NUL byte`, { field });
  }
  // One UTF-16 unit is at most three bytes of UTF-8.
  if (value.length * 3 < maxStringBytes) return;
  const bytes = Buffer.byteLength(value) + 1;
  if (bytes > maxStringBytes) {
    const message = `${field} is ${bytes - 1} bytes long; the kernel takes ${maxStringBytes - 1}`;
    throw new HoldfastError('arguments_too_long', message, { field, bytes: bytes - 1 });
  }
}

/** Names a variable without its value, which may be a secret. */
function variableName(entry: string): string {
  return `the variable ${entry.slice(0, 64).split('=', 1)[0]?.replaceAll('\0', '\\0')}`;
}

/** The caller's error for anything thrown by a start. */
export function explainStart(thrown: unknown, plan: LaunchPlan): unknown {
  if (!(thrown instanceof PosixError)) return thrown;
  const { errno, call } = thrown;
  return stepError(call, errno, plan) ?? spawnError(errno, plan);
}

/** Of a step that a start under a fence takes before exec; posix_spawn does not tell its steps apart. */
function stepError(call: string, errno: string, plan: LaunchPlan): HoldfastError | undefined {
  if (call === 'clone' && REMOVED.includes(errno))
    return new HoldfastError('spawn_failed', GROUP_REMOVED, { errno });
  if (call === 'chdir' && resourceCodes[errno] === undefined && !directoryError(errno, plan)) {
    const { cwd } = plan;
    const message = `The working directory ${cwd} cannot be entered: ${errno}.`;
    return new HoldfastError('cwd_not_usable', message, { cwd, errno });
  }
  if (!FENCE_STEPS.includes(call)) return undefined;
  const message = `${plan.file} could not be started: ${call} failed (${errno})`;
  return new HoldfastError(resourceCodes[errno] ?? 'spawn_failed', message, { call, errno });
}

const FENCE_STEPS = ['stdio', 'setrlimit', 'setuid', 'no_new_privs', 'landlock', 'seccomp'];
const REMOVED = ['ENOENT', 'ENODEV'];
const GROUP_REMOVED = 'The cgroup of the process was removed by another program.';

export function isGroupRemoved(error: unknown): boolean {
  return error instanceof HoldfastError && error.message === GROUP_REMOVED;
}

/** The same for a terminal's calls. ENOENT there means the terminal's device, not the program. */
export function explainTerminal(thrown: unknown, problem = 'no terminal could be opened'): unknown {
  if (!(thrown instanceof PosixError)) return thrown;
  const { errno } = thrown;
  // ENOSPC: all of the kernel's terminals (kernel.pty.max) are in use.
  const code = errno === 'ENOSPC' ? 'too_many_files' : (resourceCodes[errno] ?? 'unsupported');
  return new HoldfastError(code, `${problem} (${errno})`, { errno });
}

/** Throws if a check of a path failed for a reason that says nothing about the path. */
export function refuseBlindLook(thrown: unknown, path: string): void {
  const errno = errnoOf(thrown) ?? '';
  const code = errno === 'EIO' ? 'spawn_failed' : resourceCodes[errno];
  if (code === undefined) return;
  throw new HoldfastError(code, `${path} could not be looked at (${errno})`, { path, errno });
}

const resourceCodes: Readonly<Record<string, ErrorCode>> = {
  EMFILE: 'too_many_files',
  ENFILE: 'too_many_files',
  EAGAIN: 'too_many_processes',
  ENOMEM: 'no_memory',
};

export function spawnError(errno: string, plan: LaunchPlan): HoldfastError {
  // posix_spawn has one errno for everything before exec: the directory comes first.
  return directoryError(errno, plan) ?? programError(errno, plan);
}

function directoryError(errno: string, { cwd, remote }: LaunchPlan): HoldfastError | undefined {
  if (remote) return undefined;
  const perhaps = ['ENOENT', 'EACCES', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG'].includes(errno);
  return perhaps ? directoryProblem(cwd) : undefined;
}

/** Why a program cannot start in this directory. */
export function directoryProblem(cwd: string): HoldfastError | undefined {
  try {
    if (!statSync(cwd).isDirectory()) {
      const message = `The working directory ${cwd} is not a directory.`;
      return new HoldfastError('cwd_not_usable', message, { cwd });
    }
    accessSync(cwd, constants.X_OK);
    return undefined;
  } catch (error) {
    refuseBlindLook(error, cwd);
    const reason = errnoOf(error) ?? 'unknown';
    if (reason === 'ENOENT') {
      const message = `The working directory ${cwd} does not exist.`;
      return new HoldfastError('cwd_not_found', message, { cwd });
    }
    const message = `The working directory ${cwd} cannot be entered: ${reason}.`;
    return new HoldfastError('cwd_not_usable', message, { cwd, errno: reason });
  }
}

function programError(errno: string, { file: program, remote }: LaunchPlan): HoldfastError {
  const fail = (code: ErrorCode, message: string) =>
    new HoldfastError(code, message, { program, errno });
  switch (errno) {
    case 'ENOENT':
      return !remote && existsSync(program)
        ? fail('program_not_found', `${program} exists, but the interpreter it names does not`)
        : fail('program_not_found', `${program} does not exist`);
    case 'EACCES':
      return fail('program_not_executable', `${program} may not be executed`);
    case 'ENOEXEC':
      return fail(
        'program_not_executable',
        `${program} is not in a format that the kernel can run`,
      );
    case 'ENOTDIR':
      return fail('program_not_executable', `a part of the path ${program} is not a directory`);
    case 'E2BIG':
      return fail(
        'arguments_too_long',
        `arguments and environment of ${program} are too long together`,
      );
    default: {
      const code = resourceCodes[errno] ?? 'spawn_failed';
      return fail(code, `${program} could not be started (${errno})`);
    }
  }
}
