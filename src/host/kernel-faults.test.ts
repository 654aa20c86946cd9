// Calls that the kernel fails although nothing is wrong with what they are about: memory is short, or a filter of system
// calls forbids them. test/faults does the same to a whole keeper.

import { closeSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemDisk } from '../base/disk.ts';
import { failure, temporaryFolder } from '../../test/support/hosts.ts';
import { Nursery, planOf, shellPlan } from '../../test/support/recorder.ts';
import { Descriptor } from './child/descriptor.ts';
import { Mounts } from './start/mounts.ts';
import { startPipeChild } from './child/pipe-child.ts';
import type { Posix } from '../system/posix.ts';
import { PosixError } from '../system/posix-library.ts';
import { startPtyChild } from './child/pty-child.ts';
import { diskBeforeReserve, isReserved } from '../system/descriptor-reserve.ts';
import { refuseBlindLook } from './start/spawn-error.ts';

let nursery: Nursery;

beforeEach(() => {
  nursery = new Nursery();
});
afterEach(async () => {
  await nursery.endAll();
});

const fail = (call: string) => (): never => {
  throw new PosixError('EIO', call);
};

/** The calls of this program, but for some. */
const but = (broken: Partial<Posix>): Posix => ({ ...nursery.posix, ...broken });

describe('a kernel that does not tell', () => {
  test('[H100] how much a pipe holds: the exit is reported after all output', async () => {
    const posix = but({ readableBytes: fail('ioctl') });
    const { child, recorder } = await nursery.start(
      (plan, tools) => startPipeChild(plan, { ...tools, posix }),
      // The pipe is held open, so that its end does not show that all was read.
      shellPlan('sleep 1000 & printf %s $!; exit 3'),
    );
    // So that the exit finds something to read.
    child.pause();
    await recorder.exit();
    expect(recorder.calls).toEqual(['output', 'exited']);
    expect(recorder.status).toEqual({ code: 3 });
    process.kill(Number(recorder.text('merged')), 'SIGKILL');
    child.resume();
    expect(await recorder.done()).toEqual({ code: 3 });
  });

  test('[H100] how a terminal is set: nothing typed counts as shown, the end of input is typed', async () => {
    const posix = but({
      terminalMode: fail('tcgetattr'),
      foregroundGroup: fail('ioctl'),
      readableBytes: fail('ioctl'),
      readability: fail('poll'),
    });
    const { child, recorder } = await nursery.start(
      (plan, tools) => startPtyChild(plan, { ...tools, posix }),
      planOf(['/bin/cat'], { streams: 'pty', stdin: 'pipe' }),
    );
    const { terminal } = child;
    expect(child.echoes()).toBe(false);
    expect([terminal?.secret(), terminal?.edits()]).toEqual([true, false]);
    expect(terminal?.unread()).toBe(true);
    expect(terminal?.unheard()).toBe(true);
    const group = failure(Promise.resolve().then(() => terminal?.foreground()));
    expect(await group).toMatchObject({ code: 'unsupported', details: { errno: 'EIO' } });
    Object.assign(posix, { setTerminalSize: fail('ioctl') });
    const size = failure(Promise.resolve().then(() => child.resize({ cols: 9, rows: 9 })));
    expect(await size).toMatchObject({ code: 'unsupported', details: { errno: 'EIO' } });
    child.endInput();
    expect(await recorder.done()).toEqual({ code: 0 });
  });

  test('[K60] how many descriptors there may be: none is kept in reserve, and files stay usable', () => {
    const posix = but({ descriptorLimit: fail('getrlimit') });
    expect(isReserved(posix, 1_000_000)).toBe(false);
    const disk = diskBeforeReserve(systemDisk, posix);
    const fd = disk.create(join(temporaryFolder(), 'file'));
    expect(disk.size(fd)).toBe(0);
    disk.close(fd);
  });
});

test('[H102] input that the kernel has no memory for waits, and is written once', async () => {
  const [read, write] = nursery.posix.pipe();
  nursery.posix.unblock(write);
  let refusals = 2;
  let tries = 0;
  const writeNow: Posix['writeNow'] = (fd, bytes) => {
    tries += 1;
    if (refusals > 0) {
      refusals -= 1;
      return 'no_memory';
    }
    return nursery.posix.writeNow(fd, bytes);
  };
  const descriptor = new Descriptor(write, { ...nursery.tools, posix: but({ writeNow }) });
  const first = descriptor.write(Buffer.from('one '));
  const second = descriptor.write(Buffer.from('two'));
  // The pipe is writable all the time; nobody is asked again for that.
  descriptor.pause();
  descriptor.end();
  await Promise.all([first, second]);
  const bytes = Buffer.alloc(100);
  expect(bytes.toString('latin1', 0, readSync(read, bytes))).toBe('one two');
  expect(readSync(read, bytes)).toBe(0);
  expect(tries).toBe(4);
  closeSync(read);
});

describe('a look that fails', () => {
  const errnoError = (code: string) => Object.assign(new Error(code), { code });

  test('[H101] for want of descriptors or memory, or by the disk, says nothing about the path', async () => {
    const codes = { EMFILE: 'too_many_files', ENOMEM: 'no_memory', EIO: 'spawn_failed' };
    for (const [errno, code] of Object.entries(codes)) {
      const looked = Promise.resolve().then(() => refuseBlindLook(errnoError(errno), '/bin/x'));
      expect(await failure(looked)).toMatchObject({ code, details: { path: '/bin/x', errno } });
    }
    for (const errno of ['ENOENT', 'EACCES', 'ENOTDIR'])
      refuseBlindLook(errnoError(errno), '/bin/x');
  });

  test('[H101] a table of mounts that could not be read is no table without mounts', async () => {
    let news = false;
    let problem: Error | undefined;
    const mounts = new Mounts(but({ hasNews: () => news }), () => {
      if (problem) throw problem;
      return '1 1 0:1 / /nowhere rw - nfs4 source rw\n';
    });
    const find = () => mounts.look().find('/nowhere/x');
    expect(find()).toBe('elsewhere');
    [news, problem] = [true, errnoError('EMFILE')];
    expect(await failure(Promise.resolve().then(find))).toMatchObject({ code: 'too_many_files' });
    // The kernel tells of a change once.
    news = false;
    expect(await failure(Promise.resolve().then(find))).toMatchObject({ code: 'too_many_files' });
    problem = undefined;
    expect(find()).toBe('elsewhere');
    mounts.close();
  });
});
