import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { Nursery, openDescriptors, planOf, shellPlan } from '../../../test/support/recorder.ts';
import { type ErrorCode, HoldfastError } from '../../protocol/errors.ts';
import type { LaunchPlan } from '../../protocol/process.ts';
import { startNodeChild } from '../child/node-child.ts';
import { startPipeChild } from '../child/pipe-child.ts';
import { PosixError } from '../../system/posix-library.ts';
import { childrenOf } from '../../system/proc-table.ts';
import { startPtyChild } from '../child/pty-child.ts';
import { checkPlan, spawnError } from './spawn-error.ts';

let nursery: Nursery;
let directory: string;

beforeEach(() => {
  nursery = new Nursery();
  directory = mkdtempSync(join(tmpdir(), 'holdfast-errors-'));
});
afterEach(async () => {
  await nursery.endAll();
  rmSync(directory, { recursive: true });
});

function thrownBy(call: () => unknown): HoldfastError {
  try {
    call();
  } catch (error) {
    if (error instanceof HoldfastError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

async function rejectedBy(promise: Promise<unknown>): Promise<HoldfastError> {
  const outcome = await promise.catch((error: unknown) => error);
  if (outcome instanceof HoldfastError) return outcome;
  throw new Error(`not refused as expected: ${String(outcome)}`);
}

interface Case {
  readonly code: ErrorCode;
  readonly names: string;
  readonly plan: LaunchPlan;
}

/** Plans that the kernel refuses, with the thing that the message must name. */
function refusedPlans(): Record<string, Case> {
  const at = (name: string) => join(directory, name);
  writeFileSync(at('plain'), 'no program', { mode: 0o644 });
  writeFileSync(at('garbage'), 'neither script nor binary');
  writeFileSync(at('orphan-script'), '#!/nowhere/interpreter\n');
  for (const name of ['garbage', 'orphan-script']) chmodSync(at(name), 0o755);
  mkdirSync(at('folder'));
  const of = (code: ErrorCode, file: string, options: Partial<LaunchPlan> = {}): Case => ({
    code,
    names: options.cwd ?? file,
    plan: planOf([file], options),
  });
  return {
    'no such program': of('program_not_found', at('missing')),
    'a script without its interpreter': of('program_not_found', at('orphan-script')),
    'a file without execute permission': of('program_not_executable', at('plain')),
    'a directory': of('program_not_executable', at('folder')),
    'no known format': of('program_not_executable', at('garbage')),
    'a file in the place of a folder': of('program_not_executable', at('plain/program')),
    'no such directory': of('cwd_not_found', '/bin/true', { cwd: at('missing-folder') }),
    'a file as directory': of('cwd_not_usable', '/bin/true', { cwd: at('plain') }),
    'too many arguments': {
      code: 'arguments_too_long',
      names: '/bin/true',
      plan: planOf(['/bin/true', ...Array.from({ length: 40 }, () => 'x'.repeat(100_000))]),
    },
  };
}

describe('what the kernel refuses', () => {
  const names = [
    'no such program',
    'a script without its interpreter',
    'a file without execute permission',
    'a directory',
    'no known format',
    'a file in the place of a folder',
    'no such directory',
    'a file as directory',
    'too many arguments',
  ];

  test.each(names)(
    '[E1] %s is reported by its own code and by name, on pipes, on a terminal and through Node',
    async (name) => {
      const refused = refusedPlans()[name];
      if (!refused) throw new Error(`no case ${name}`);
      const { code, names, plan } = refused;
      const errors = [
        await rejectedBy(nursery.start(startPipeChild, plan)),
        await rejectedBy(nursery.start(startPtyChild, { ...plan, streams: 'pty' })),
      ];
      // Node starts programs by execvp, which gives what the kernel does not know to sh.
      if (name !== 'no known format') {
        errors.push(await rejectedBy(startNodeChild(plan)));
      }
      for (const error of errors) {
        expect(error.code).toBe(code);
        expect(error.message).toContain(names);
      }
    },
  );

  test.each([
    ['EMFILE', 'too_many_files'],
    ['ENFILE', 'too_many_files'],
    ['EAGAIN', 'too_many_processes'],
    ['ENOMEM', 'no_memory'],
    ['ETXTBSY', 'spawn_failed'],
    ['errno 9999', 'spawn_failed'],
  ])('[E1] %s becomes %s', (errno, code) => {
    const error = spawnError(errno, planOf(['/bin/true']));
    expect(error.code).toBe(code);
    expect(error.message).toContain('/bin/true');
    expect(error.message).toContain(errno);
  });

  test.each([
    ['pipes', startPipeChild, { streams: 'separate', stdin: 'pipe' }, 6],
    ['a terminal', startPtyChild, { streams: 'pty', stdin: 'pipe' }, 2],
  ] as const)(
    '[E5] on %s, a start with too few descriptors is refused, costs none, and works later',
    async (_, start, options, needed) => {
      const plan = planOf(['/bin/true'], options);
      const before = openDescriptors();
      for (let spare = 0; spare < needed; spare += 1) {
        const error = await withSpareDescriptors(spare, () =>
          rejectedBy(nursery.start(start, plan)),
        );
        expect(error.code).toBe('too_many_files');
        expect(error.retryable).toBe(true);
        expect(openDescriptors()).toEqual(before);
      }
      const { child, recorder } = await withSpareDescriptors(needed, () =>
        nursery.start(start, plan),
      );
      expect(await recorder.done()).toEqual({ code: 0 });
      child.release();
      expect(openDescriptors()).toEqual(before);
    },
  );

  test('[R9] a child that closes its output while no descriptor is free leaves no pipe behind', async () => {
    const before = openDescriptors();
    const plan = shellPlan('read x; exec >/dev/null 2>&1; exec sleep 1000', { stdin: 'pipe' });
    const { child, recorder } = await nursery.start(startPipeChild, plan);
    await withSpareDescriptors(0, async () => {
      await child.write(Buffer.from('go\n'));
      await recorder.until(() => recorder.calls.includes('ended'));
      // The descriptor is closed in the turn after its end was reported.
      await nextTurn();
      await nextTurn();
    });
    child.endInput();
    expect(openDescriptors()).toEqual(before);
    process.kill(child.pid, 'SIGKILL');
    expect(await recorder.exit()).toEqual({ signal: 'SIGKILL' });
  });

  test('[E4] fifty failing starts leave no descriptor and no zombie', async () => {
    const cases = Object.values(refusedPlans());
    const before = openDescriptors();
    const children = childrenOf(process.pid);
    for (let run = 0; run < 50; run += 1) {
      const { plan } = cases[run % cases.length] ?? {};
      if (!plan) continue;
      const options = { stdin: 'pipe', streams: run % 2 ? 'separate' : 'merged' } as const;
      await rejectedBy(nursery.start(startPipeChild, { ...plan, ...options }));
      await rejectedBy(nursery.start(startPtyChild, { ...plan, streams: 'pty' }));
    }
    expect(openDescriptors()).toEqual(before);
    expect(childrenOf(process.pid)).toEqual(children);
  });
});

describe('what is refused before', () => {
  test.each([
    ['file', { file: '/bin/tr\0ue' }],
    ['cwd', { cwd: '/\0' }],
    ['argv[1]', { argv: ['true', 'a\0b'] }],
    ['the variable SECRET', { env: ['SECRET=a\0b'] }],
  ])('[E2] a NUL byte in %s is invalid input, and no value is repeated', async (field, wrong) => {
    const plan = { ...planOf(['/bin/true']), ...wrong };
    const errors = [
      await rejectedBy(nursery.start(startPipeChild, plan)),
      await rejectedBy(nursery.start(startPtyChild, plan)),
      await rejectedBy(startNodeChild(plan)),
    ];
    for (const error of errors) {
      expect(error.code).toBe('invalid_input');
      expect(error.message).toContain(field);
      expect(error.message).not.toContain('a\0b');
    }
  });

  test('[E2] an empty argv is invalid input', () => {
    expect(thrownBy(() => checkPlan(planOf([], { file: '/bin/true' }))).code).toBe('invalid_input');
  });

  test.each(['x', 'é', '語'])(
    '[E3] one string of 131,071 bytes of "%s" is taken, one more byte is not',
    async (letter) => {
      const width = Buffer.byteLength(letter);
      const longest = letter
        .repeat(Math.floor(131_071 / width))
        .padEnd(Math.floor(131_071 / width) + (131_071 % width), '.');
      expect(Buffer.byteLength(longest)).toBe(131_071);
      const { recorder } = await nursery.start(startPipeChild, planOf(['/bin/true', longest]));
      expect(await recorder.done()).toEqual({ code: 0 });
      const error = await rejectedBy(
        nursery.start(startPipeChild, planOf(['/bin/true', `${longest}.`])),
      );
      expect(error.code).toBe('arguments_too_long');
      expect(error.message).toContain('argv[1]');
      const variable = thrownBy(() =>
        checkPlan(planOf(['/bin/true'], { env: [`LONG=${longest}`] })),
      );
      expect(variable.code).toBe('arguments_too_long');
      expect(variable.message).toContain('the variable LONG is');
    },
  );
});

/** Runs `call` while this process may open only a few more descriptors. */
async function withSpareDescriptors<T>(spare: number, call: () => Promise<T>): Promise<T> {
  const highest = Math.max(...openDescriptors().map((line) => Number.parseInt(line, 10)));
  const limits = readFileSync('/proc/self/limits', 'latin1');
  const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? '';
  const setLimit = (value: string) =>
    execFileSync('prlimit', [`--pid=${process.pid}`, `--nofile=${value}:`]);
  const filling: number[] = [];
  setLimit(String(highest + 20));
  try {
    fill(filling);
    filling.splice(0, spare).forEach((fd) => closeSync(fd));
    return await call();
  } finally {
    filling.forEach((fd) => closeSync(fd));
    setLimit(soft);
  }
}

function fill(filling: number[]): void {
  try {
    for (;;) filling.push(nursery.posix.duplicate(0));
  } catch (error) {
    if (!(error instanceof PosixError) || error.errno !== 'EMFILE') throw error;
  }
}
