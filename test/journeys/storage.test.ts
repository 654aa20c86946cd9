// A real disk that is full, read-only or limited, under a keeper with live children.

import { execFileSync } from 'node:child_process';
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemDisk, type Disk } from '../../src/base/disk.ts';
import { Host } from '../../src/host/host.ts';
import {
  failure,
  inProcess,
  onCleanup,
  OWNER,
  outputText,
  pages,
  startProcess,
  temporaryFolder,
  waitFor,
} from '../support/hosts.ts';

const isRoot = process.getuid?.() === 0;
const closed = { kind: 'closed' } as const;

/** A small file system of its own: needs root. */
function smallDisk(bytes: number): string {
  const folder = join(temporaryFolder(), 'disk');
  mkdirSync(folder);
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes},mode=0700`, 'tmpfs', folder]);
  onCleanup(() => void execFileSync('umount', ['-l', folder]));
  return folder;
}

/** Takes the last byte of a disk. */
function fillUp(folder: string): void {
  const filler = openSync(join(folder, 'filler'), 'a');
  try {
    for (;;) writeSync(filler, Buffer.alloc(4096));
  } catch (error) {
    expect(error).toMatchObject({ code: 'ENOSPC' });
  } finally {
    closeSync(filler);
  }
}

describe.runIf(isRoot)('a full disk', () => {
  it('[F1] children live on, output stays readable, the gap is counted, and it recovers by itself', async () => {
    const folder = smallDisk(1024 * 1024);
    const api = await inProcess({ folder, limits: { memoryBytes: 512 * 1024 } });
    const id = await startProcess(api, {
      command: 'seq 1 400000; read _; echo after; read _',
      stdin: 'pipe',
    });
    await waitFor(api, id, { kind: 'text', text: '400000' });
    const during = await api.get(OWNER, { id });
    expect(during).toMatchObject({
      state: 'running',
      degraded: 'ENOSPC',
      bytes: { total: 2_688_895 },
    });
    expect(during.bytes.lost).toBeGreaterThan(500_000);
    fillUp(folder);
    expect((await failure(api.start(OWNER, { command: 'true' }))).code).toBe('storage_full');
    execFileSync('mount', ['-o', 'remount,size=64m', folder]);
    await api.write(OWNER, { id, data: Buffer.from('\n') });
    await waitFor(api, id, { kind: 'text', text: 'after' });
    while ((await api.get(OWNER, { id })).degraded !== undefined)
      await api.wait(OWNER, { waits: [{ id, for: [closed] }], timeoutMs: 20 });
    await api.write(OWNER, { id, data: Buffer.from('\n') });
    const { process: info } = await waitFor(api, id, closed);
    const { events, pages: read } = await pages(api, id);
    expect(read.every((page) => page.missed === undefined)).toBe(true);
    const gaps = events.flatMap((event) => (event.kind === 'gap' ? [event.body.bytes] : []));
    expect(gaps.reduce((sum, bytes) => sum + bytes, 0)).toBe(info.bytes.lost);
    const text = await outputText(api, id);
    expect(text.length + info.bytes.lost).toBe(2_688_895 + 6);
    expect(text.startsWith('1\n2\n3\n') && text.endsWith('399999\n400000\nafter\n')).toBe(true);
    expect(info.bytes).toMatchObject({ dropped: 0, retained: text.length });
  });

  it('[F2] a read-only disk refuses starts with the reason, and what is there can be read', async () => {
    const folder = smallDisk(4 * 1024 * 1024);
    const first = await Host.open({
      folder,
      surroundings: { env: process.env, cwd: '/', home: '/' },
    });
    const id = await startProcess(first, { command: 'echo kept' });
    await waitFor(first, id, closed);
    await first.close();
    execFileSync('mount', ['-o', 'remount,ro', folder]);
    const second = await inProcess({ folder });
    const error = await failure(second.start(OWNER, { command: 'true' }));
    expect([error.code, error.message]).toEqual([
      'storage_unavailable',
      expect.stringContaining('EROFS'),
    ]);
    expect(await outputText(second, id)).toBe('kept\n');
    execFileSync('mount', ['-o', 'remount,rw', folder]);
    expect((await second.start(OWNER, { command: 'true' })).attached).toBe(false);
  });

  it('[F3] a folder without room for the feed still opens', async () => {
    const folder = smallDisk(1024 * 1024);
    const first = await Host.open({
      folder,
      surroundings: { env: process.env, cwd: '/', home: '/' },
    });
    const id = await startProcess(first, { command: 'echo kept' });
    await waitFor(first, id, closed);
    await first.close();
    fillUp(folder);
    const second = await inProcess({ folder });
    expect(await outputText(second, id)).toBe('kept\n');
    expect((await failure(second.start(OWNER, { command: 'true' }))).code).toBe('storage_full');
    rmSync(join(folder, 'filler'));
    expect((await second.start(OWNER, { command: 'true' })).attached).toBe(false);
  });
});

describe('what lies in the folder', () => {
  it('[F4] damaged, foreign and empty files stop nobody', async () => {
    const folder = temporaryFolder();
    const first = await Host.open({
      folder,
      surroundings: { env: process.env, cwd: '/', home: '/' },
    });
    const id = await startProcess(first, { command: 'echo kept' });
    await waitFor(first, id, closed);
    await first.close();
    const journals = join(folder, 'journals');
    writeFileSync(join(journals, 'aaaa.0001.hfj'), '');
    writeFileSync(join(journals, 'bbbb.0001.hfj'), Buffer.alloc(5000, 0xa5));
    writeFileSync(join(journals, 'cccc.0007.hfj'), 'HFCLOSED');
    writeFileSync(join(journals, 'notes.txt'), 'not ours');
    mkdirSync(join(journals, 'dddd.0001.hfj'));
    const second = await inProcess({ folder });
    expect((await second.list('*', {})).processes.map((process) => process.id)).toEqual([id]);
    expect(readdirSync(journals)).toContain('notes.txt');
  });
});

it('[J24] what a process has printed leaves memory when it has ended, file by file, and not its end', async () => {
  const put: string[] = [];
  let three = (): void => undefined;
  const putAway = new Promise<void>((resolve) => {
    three = resolve;
  });
  const disk: Disk = {
    ...systemDisk,
    async forgetPages(fd) {
      put.push(readlinkSync(`/proc/self/fd/${fd}`));
      if (put.length === 3) three();
    },
  };
  const folder = temporaryFolder();
  const api = await inProcess({ folder, disk, limits: { journalBytes: 1024 * 1024 } });
  const id = await startProcess(api, {
    command: 'head -c 500000 /dev/zero; echo all; read _',
    stdin: 'pipe',
  });
  await waitFor(api, id, { kind: 'text', text: 'all' });
  expect(put).toEqual([]);
  await api.write(OWNER, { id, data: Buffer.from('\n') });
  await waitFor(api, id, closed);
  await putAway;
  const journals = join(folder, 'journals');
  const [serial = ''] = readdirSync(journals)
    .filter((name) => name.endsWith('.0002.hfj'))
    .map((name) => name.replace('.0002.hfj', ''));
  const files = ['0001', '0002', '0003'].map((number) => join(journals, `${serial}.${number}.hfj`));
  expect(put).toEqual(files);
  expect((await pages(api, id)).events.at(-1)).toMatchObject({ kind: 'closed', offset: 500_004 });
});
