import { closeSync, writeSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import { requirePosix } from '../../../test/support/recorder.ts';
import { PosixError } from '../../system/posix-library.ts';
import { Poller } from './poller.ts';

const posix = requirePosix();

for (const errno of ['ENOSPC', 'ENOMEM'])
  it(`[X12] a descriptor that the kernel cannot take (${errno}) is watched later`, async () => {
    let refusals = 3;
    const poller = new Poller({
      ...posix,
      epollSet: (...args) => {
        refusals -= 1;
        if (refusals >= 0) throw new PosixError(errno, 'epoll_ctl');
        posix.epollSet(...args);
      },
    });
    const [read, write] = posix.pipe();
    onTestFinished(() => {
      poller.forget(read);
      poller.close();
      for (const fd of [read, write]) closeSync(fd);
    });
    writeSync(write, 'x');
    const happened = new Promise<boolean>((resolve) => {
      poller.watch(read, { read: true, write: false }, (reported) => resolve(reported.read));
    });
    expect(await happened).toBe(true);
    expect(refusals).toBe(-1);
  });

it('[X12] a descriptor that could not be taken from the list is watched again, and closed as ever', async () => {
  const poller = new Poller({
    ...posix,
    epollRemove: () => {
      throw new PosixError('ENOMEM', 'epoll_ctl');
    },
  });
  const [read, write] = posix.pipe();
  onTestFinished(() => {
    poller.forget(read);
    poller.close();
    for (const fd of [read, write]) closeSync(fd);
  });
  poller.watch(read, { read: true, write: false }, () => undefined);
  poller.forget(read);
  writeSync(write, 'x');
  const happened = new Promise<boolean>((resolve) => {
    poller.watch(read, { read: true, write: false }, (reported) => resolve(reported.read));
  });
  expect(await happened).toBe(true);
});
