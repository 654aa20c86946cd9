import { closeSync, readSync, writeSync } from 'node:fs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { requirePosix, turnsUntil } from '../../test/support/recorder.ts';
import { Poller } from '../host/child/poller.ts';
import { checkLoopPoll, type LoopHandle, type WatchReadable } from './loop-poll.ts';

const posix = requirePosix();
const handles: LoopHandle[] = [];
let [read, write] = [-1, -1];

beforeEach(() => {
  [read, write] = posix.pipe();
});

afterEach(() => {
  for (const handle of handles.splice(0)) handle.close();
  closeSync(read);
  closeSync(write);
});

const fill = (): void => void writeSync(write, '.');
/** Like a handle of a koffi that never calls back. */
const dead: WatchReadable = () => ({ ref() {}, unref() {}, close() {} });

it.each(['koffi', 'thread'] as const)(
  '[P24] %s reports a readable descriptor until it is closed',
  async (name) => {
    let calls = 0;
    const handle = posix.watch[name](read, () => {
      readSync(read, Buffer.alloc(1));
      calls += 1;
    });
    handles.push(handle);
    handle.ref();
    fill();
    await turnsUntil(() => calls === 1);
    fill();
    await turnsUntil(() => calls === 2);
    handle.close();
    fill();
    const after = posix.watch[name](read, () => undefined);
    after.close();
    expect(calls).toBe(2);
  },
);

it('[P24] the self-check accepts both ways, and refuses one that is silent or throws', async () => {
  for (const watch of [posix.watch.koffi, posix.watch.thread])
    expect(await checkLoopPoll(watch, { read, fill })).toBe(true);
  expect(await checkLoopPoll(dead, { read, fill }, 1)).toBe(false);
  const throwing: WatchReadable = () => {
    throw new TypeError('koffi.node.poll is not a function');
  };
  expect(await checkLoopPoll(throwing, { read, fill }, 1)).toBe(false);
});

it('[P24] a poller whose handle fails the self-check goes on with a thread, and misses nothing', async () => {
  const poller = new Poller(posix);
  let seen = 0;
  poller.watch(read, { read: true, write: false }, () => {
    readSync(read, Buffer.alloc(1));
    seen += 1;
  });
  expect(await poller.check()).toBe('koffi');
  expect(await poller.check(dead, 1)).toBe('thread');
  for (let sent = 1; sent <= 3; sent += 1) {
    fill();
    await turnsUntil(() => seen === sent);
  }
  poller.forget(read);
  poller.close();
});
