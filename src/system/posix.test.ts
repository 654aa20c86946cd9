import { execFileSync } from 'node:child_process';
import {
  closeSync,
  fdatasyncSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statfsSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { loadPosix, type Posix, posixProblem } from './posix.ts';
import { PosixError } from './posix-library.ts';

const isLoaded = () =>
  Object.keys(createRequire(import.meta.url).cache).some((path) => path.includes('/koffi/'));

function posix(): Posix {
  const loaded = loadPosix();
  if (!loaded) throw new Error(posixProblem());
  return loaded;
}

function errnoOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    if (error instanceof PosixError) return error.errno;
    throw error;
  }
  return 'no error';
}

test('[P19] koffi is loaded once, at the first use', () => {
  expect(isLoaded()).toBe(false);
  expect(loadPosix()).toBe(loadPosix());
  expect(isLoaded()).toBe(true);
  expect(posixProblem()).toBeUndefined();
});

test('[P19] a failed call throws with the name of its errno', async () => {
  expect(errnoOf(() => posix().duplicate(9999))).toBe('EBADF');
  expect(errnoOf(() => posix().readableBytes(9999))).toBe('EBADF');
  expect(errnoOf(() => posix().readNow(9999, Buffer.alloc(1)))).toBe('EBADF');
  expect(errnoOf(() => posix().wait(1))).toBe('ECHILD');
  expect(errnoOf(() => posix().openProcess(4_194_304))).toBe('ESRCH');
  expect(errnoOf(() => posix().openProcess(0))).toBe('EINVAL');
  expect(errnoOf(() => posix().terminalMode(openPipeEnd()))).toBe('ENOTTY');
  const missing = { file: '/nowhere', argv: ['x'], env: [], cwd: '/' };
  const spawned = posix().spawn(missing, { output: 1, errors: 2 });
  await expect(spawned).rejects.toMatchObject({ errno: 'ENOENT' });
});

function openPipeEnd(): number {
  const [read, write] = posix().pipe();
  closeSync(write);
  queueMicrotask(() => closeSync(read));
  return read;
}

test('[P19] the bytes of a pipe and its end are known without reading', () => {
  const [read, write] = posix().pipe();
  expect(posix().readableBytes(read)).toBe(0);
  expect(posix().readability(read).over).toBe(false);
  writeSync(write, 'hello');
  expect(posix().readableBytes(read)).toBe(5);
  closeSync(write);
  expect(posix().readability(read).over).toBe(false);
  const buffer = Buffer.alloc(10);
  expect(posix().readNow(read, buffer)).toBe(5);
  expect(buffer.toString('utf8', 0, 5)).toBe('hello');
  expect(posix().readability(read).over).toBe(true);
  expect(posix().readNow(read, buffer)).toBe(0);
  closeSync(read);
});

test('[TM124] typed input is reported as readable before the kernel has moved it on', () => {
  const { master, name } = posix().openTerminal();
  const device = openSync(name, 'r+');
  const buffer = Buffer.alloc(10);
  for (let turn = 0; turn < 500; turn += 1) {
    writeSync(master, 'x\n');
    expect(posix().readability(device)).toEqual({ readable: true, over: false });
    expect(posix().readableBytes(device)).toBe(2);
    expect(readSync(device, buffer)).toBe(2);
    expect(posix().readability(device).readable).toBe(false);
    writeSync(device, 'y');
    expect(posix().readability(master).readable).toBe(true);
    while (posix().readNow(master, buffer) !== undefined);
    expect(posix().readability(master).readable).toBe(false);
  }
  closeSync(device);
  closeSync(master);
});

test('[P19] a terminal that no process holds has ended; one that is held is only empty', () => {
  const { master, name } = posix().openTerminal();
  const device = openSync(name, 'r+');
  const buffer = Buffer.alloc(10);
  expect(posix().readNow(master, buffer)).toBeUndefined();
  writeSync(device, 'last');
  closeSync(device);
  expect(posix().readability(master).over).toBe(false);
  expect(posix().readNow(master, buffer)).toBe(4);
  expect(posix().readability(master).over).toBe(true);
  expect(posix().readNow(master, buffer)).toBe(0);
  closeSync(master);
});

test('[P21] a call is retried after EINTR', async () => {
  const ignore = (): void => {};
  process.on('SIGWINCH', ignore);
  const [read, write] = posix().pipe();
  const script = `while kill -WINCH ${process.pid}; do :; done`;
  const stdio = { output: write, errors: write };
  const shell = { file: '/bin/sh', argv: ['sh', '-c', script], env: [], cwd: '/' };
  const pid = await posix().spawn(shell, stdio);
  try {
    for (let call = 0; call < 10_000; call += 1) expect(posix().readability(read).over).toBe(false);
  } finally {
    process.kill(pid, 'SIGKILL');
    while (posix().wait(pid) === undefined);
    process.off('SIGWINCH', ignore);
    closeSync(read);
    closeSync(write);
  }
});

test('[P20] a lock belongs to one open file until it is closed', () => {
  const path = join(tmpdir(), `holdfast-lock-${process.pid}`);
  const [first, second] = [openSync(path, 'w'), openSync(path, 'w')];
  expect(posix().tryLock(first)).toBe(true);
  expect(posix().tryLock(second)).toBe(false);
  closeSync(first);
  posix().lock(second);
  const third = openSync(path, 'w');
  expect(posix().tryLock(third)).toBe(false);
  closeSync(second);
  expect(posix().tryLock(third)).toBe(true);
  closeSync(third);
  rmSync(path);
});

/** Of a file system that is memory. */
const TMPFS = 0x01021994;

test('[J24] a synced file leaves the page cache, and reads as before', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-posix-'));
  try {
    const path = join(folder, 'file');
    const bytes = Buffer.alloc(1024 * 1024, 'x');
    writeFileSync(path, bytes);
    const fd = openSync(path, 'r');
    fdatasyncSync(fd);
    await posix().evictPages(fd);
    closeSync(fd);
    const resident = Number(execFileSync('fincore', ['-nbo', 'RES', path]).toString());
    expect(resident).toBe(statfsSync(folder).type === TMPFS ? bytes.length : 0);
    expect(readFileSync(path).equals(bytes)).toBe(true);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
