import { closeSync, readSync, writeSync } from 'node:fs';

import { afterEach, beforeEach, expect, test } from 'vitest';

import { openDescriptors, requirePosix, turnsUntil } from '../../../test/support/recorder.ts';
import { type ChildTools, createReadBuffer, Descriptor } from './descriptor.ts';
import { Poller } from './poller.ts';
import { Reaper } from './reaper.ts';

const posix = requirePosix();
let tools: ChildTools;
let others: number[];

beforeEach(() => {
  const reaper = new Reaper({ posix, adopts: false });
  tools = { posix, reaper, poller: new Poller(posix), readBuffer: createReadBuffer() };
  others = [];
});
afterEach(() => {
  tools.reaper.close();
  tools.poller.close();
  others.forEach((fd) => closeSync(fd));
});

/** A pipe whose one end is ours and does not block. */
function pipe(ours: 'read' | 'write'): { our: number; other: number } {
  const [read, write] = posix.pipe();
  const [our, other] = ours === 'read' ? [read, write] : [write, read];
  posix.unblock(our);
  return { our, other };
}

function reader() {
  const { our, other } = pipe('read');
  const seen = { bytes: 0, reads: 0, over: 0 };
  const descriptor = new Descriptor(our, tools, {
    received: (bytes) => {
      seen.bytes += bytes.length;
      seen.reads += 1;
    },
    over: () => (seen.over += 1),
  });
  return { descriptor, other, seen };
}

test('[P22] reads what comes, and tells the end once', async () => {
  const { descriptor, other, seen } = reader();
  writeSync(other, 'one');
  await turnsUntil(() => seen.bytes === 3);
  writeSync(other, 'two');
  closeSync(other);
  await turnsUntil(() => seen.over > 0);
  expect(seen).toMatchObject({ bytes: 6, over: 1 });
  expect(descriptor.drain()).toBe(false);
  descriptor.close();
  descriptor.close();
  expect(seen.over).toBe(1);
});

test('[P22] while paused nothing is read, and neither data nor the end keep the loop busy', async () => {
  const { descriptor, other, seen } = reader();
  descriptor.pause();
  writeSync(other, 'late');
  closeSync(other);
  const turns = { left: 50 };
  await turnsUntil(() => (turns.left -= 1) < 0);
  expect(seen).toEqual({ bytes: 0, reads: 0, over: 0 });
  descriptor.resume();
  await turnsUntil(() => seen.over > 0);
  expect(seen).toEqual({ bytes: 4, reads: 1, over: 1 });
  descriptor.close();
});

test('[P22] one descriptor that is never empty leaves the others their turns', async () => {
  const busy = reader();
  const quiet = reader();
  const full = Buffer.alloc(65_536, 'x');
  writeSync(quiet.other, 'x');
  let filled = 0;
  // Filled again whenever the loop comes round.
  await turnsUntil(() => {
    if (filled <= busy.seen.bytes) filled += writeSync(busy.other, full);
    return quiet.seen.bytes > 0 && busy.seen.bytes >= full.length;
  });
  expect(busy.seen.over + quiet.seen.over).toBe(0);
  for (const { descriptor, other } of [busy, quiet]) {
    descriptor.close();
    closeSync(other);
  }
});

test('[P22] drains what is there now, and says whether that was the end', () => {
  const open = reader();
  writeSync(open.other, Buffer.alloc(5000));
  expect(open.descriptor.drain()).toBe(false);
  expect(open.seen.bytes).toBe(5000);
  const ended = reader();
  writeSync(ended.other, Buffer.alloc(60_000));
  closeSync(ended.other);
  expect(ended.descriptor.drain()).toBe(true);
  expect(ended.seen).toMatchObject({ bytes: 60_000, over: 0 });
  open.descriptor.close();
  ended.descriptor.close();
  closeSync(open.other);
});

test('[P23] writes more than the pipe takes, in order, each confirmed when it is taken', async () => {
  const { our, other } = pipe('write');
  const descriptor = new Descriptor(our, tools);
  const sent = Array.from({ length: 5 }, (_, index) => Buffer.alloc(100_000, 97 + index));
  const reported: number[] = [];
  const all = sent.map((bytes, index) => descriptor.write(bytes).then(() => reported.push(index)));
  descriptor.end();
  await expect(descriptor.write(Buffer.from('after the end'))).rejects.toMatchObject({
    code: 'stdin_closed',
  });
  const read = Buffer.alloc(500_000);
  posix.unblock(other);
  let count = 0;
  await turnsUntil(() => {
    count += posix.readNow(other, read.subarray(count)) ?? 0;
    return count === read.length;
  });
  await Promise.all(all);
  expect(read.equals(Buffer.concat(sent))).toBe(true);
  expect(reported).toEqual([0, 1, 2, 3, 4]);
  expect(readSync(other, Buffer.alloc(1))).toBe(0);
  others.push(other);
});

test('[P23] what nobody will read is refused: the write that waits and the next one', async () => {
  const { our, other } = pipe('write');
  const descriptor = new Descriptor(our, tools);
  const waiting = descriptor.write(Buffer.alloc(1_000_000));
  closeSync(other);
  await expect(waiting).rejects.toMatchObject({ code: 'stdin_closed' });
  await expect(descriptor.write(Buffer.from('x'))).rejects.toMatchObject({ code: 'stdin_closed' });
  descriptor.close();
});

test('[P23] closing refuses what waits and leaves no descriptor', async () => {
  const before = openDescriptors();
  const { our, other } = pipe('write');
  const descriptor = new Descriptor(our, tools);
  const waiting = descriptor.write(Buffer.alloc(1_000_000));
  descriptor.close();
  await expect(waiting).rejects.toMatchObject({ code: 'stdin_closed' });
  closeSync(other);
  expect(openDescriptors()).toEqual(before);
});

test('[P22] more descriptors than one call reports are all served', async () => {
  const many = Array.from({ length: 200 }, reader);
  for (const { other } of many) writeSync(other, 'x');
  await turnsUntil(() => many.every(({ seen }) => seen.bytes === 1));
  for (const { other } of many) closeSync(other);
  await turnsUntil(() => many.every(({ seen }) => seen.over > 0));
  expect(new Set(many.map(({ seen }) => JSON.stringify(seen)))).toEqual(
    new Set([JSON.stringify({ bytes: 1, reads: 1, over: 1 })]),
  );
  for (const { descriptor } of many) descriptor.close();
});
