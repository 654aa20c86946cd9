// A real disk that is full, read-only or limited, under a keeper with live children.

import { execFileSync } from 'node:child_process';
import {
  closeSync,
  cpSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { systemClock, type Clock } from '../../src/base/clock.ts';
import { systemDisk, type Disk } from '../../src/base/disk.ts';
import { Host } from '../../src/host/host.ts';
import {
  failure,
  fillUp,
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
  const syncAndEvict = new Promise<void>((resolve) => {
    three = resolve;
  });
  const disk: Disk = {
    ...systemDisk,
    async evictPages(fd) {
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
  await syncAndEvict;
  const journals = join(folder, 'journals');
  const [serial = ''] = readdirSync(journals)
    .filter((name) => name.endsWith('.0002.hfj'))
    .map((name) => name.replace('.0002.hfj', ''));
  const files = ['0001', '0002', '0003'].map((number) => join(journals, `${serial}.${number}.hfj`));
  expect(put).toEqual(files);
  expect((await pages(api, id)).events.at(-1)).toMatchObject({ kind: 'closed', offset: 500_004 });
});

it('[J43] a host waits at its end for a file that a thread is making, and says when none came', async () => {
  let asked = (): void => undefined;
  let letGo = (): void => undefined;
  const isAsked = new Promise<void>((resolve) => (asked = resolve));
  const isLetGo = new Promise<void>((resolve) => (letGo = resolve));
  const disk: Disk = {
    ...systemDisk,
    // The file behind the one that is being written.
    async createAsync(path) {
      if (path.endsWith('.0002.hfj')) {
        asked();
        await isLetGo;
      }
      return systemDisk.createAsync(path);
    },
  };
  const api = await inProcess({ disk, limits: { journalBytes: 1024 * 1024 } });
  await startProcess(api, { command: 'head -c 110000 /dev/zero; exec sleep 1000' });
  await isAsked;
  expect((await api.shutDown()).problems).toEqual(['files: not done within 1000 ms']);
  letGo();
});

it('[J28] a disk that cannot be read is a problem of storage to whoever reads, and of nobody else', async () => {
  let broken = false;
  const check = (): void => {
    if (broken) throw Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO' });
  };
  const disk: Disk = {
    ...systemDisk,
    read: async (fd, into, position) => {
      check();
      return systemDisk.read(fd, into, position);
    },
    readSync: (fd, into, position) => {
      check();
      return systemDisk.readSync(fd, into, position);
    },
  };
  const api = await inProcess({ disk });
  const id = await startProcess(api, { command: 'echo hello; read _', stdin: 'pipe' });
  await waitFor(api, id, { kind: 'text', text: 'hello' });
  broken = true;
  const calls = [
    api.read(OWNER, { id }),
    api.range(OWNER, { id, offset: 0 }),
    api.text(OWNER, { id }),
    api.search(OWNER, { id, pattern: 'hello' }),
  ];
  for (const call of calls)
    expect(await failure(call)).toMatchObject({ code: 'storage_unavailable' });
  await api.write(OWNER, { id, eof: true });
  expect((await waitFor(api, id, { kind: 'settled' })).met).toBe(true);
  const { completions } = await api.completions(OWNER, { waitMs: 60_000 });
  expect(completions.map((completion) => completion.id)).toEqual([id]);
  broken = false;
  expect(await outputText(api, id)).toBe('hello\n');
});

it('[J29] a journal that the disk took only after the end keeps no file open', async () => {
  let broken = false;
  let own: number | undefined;
  let taken = (): void => undefined;
  let released = (): void => undefined;
  const isTaken = new Promise<void>((resolve) => (taken = resolve));
  const isReleased = new Promise<void>((resolve) => (released = resolve));
  const check = (): void => {
    if (broken) throw Object.assign(new Error('ENOSPC: made to fail'), { code: 'ENOSPC' });
  };
  const disk: Disk = {
    ...systemDisk,
    create: (path) => {
      check();
      return systemDisk.create(path);
    },
    writeSync: (fd, parts, position) => {
      check();
      return systemDisk.writeSync(fd, parts, position);
    },
    write: async (fd, parts, position) => {
      check();
      const bytes = await systemDisk.write(fd, parts, position);
      if (parts.some((part) => part.includes('HFCLOSED'))) {
        own = fd;
        taken();
      }
      return bytes;
    },
    close: (fd) => {
      systemDisk.close(fd);
      if (fd === own) released();
    },
  };
  const api = await inProcess({ disk });
  const id = await startProcess(api, { command: 'echo one; read _', stdin: 'pipe' });
  await waitFor(api, id, { kind: 'text', text: 'one' });
  broken = true;
  await api.write(OWNER, { id, eof: true });
  await waitFor(api, id, closed);
  broken = false;
  await isTaken;
  // What is put away is put away when the next process has ended.
  await waitFor(api, await startProcess(api, { command: 'true' }), closed);
  await isReleased;
  expect(await outputText(api, id)).toBe('one\n');
});

/** Every write takes it so long that the next one is left to a thread. Those to one folder can be held back there. */
class SlowDisk {
  private tookUs = 0;
  private readonly paths = new Map<number, string>();
  private held: { readonly folder: string; readonly until: Promise<void> } | undefined;
  private asked = (): void => undefined;
  readonly clock: Clock = { ...systemClock, nowUs: () => systemClock.nowUs() + this.tookUs };
  readonly disk: Disk = {
    ...systemDisk,
    create: (path) => this.opened(systemDisk.create(path), path),
    createAsync: async (path) => this.opened(await systemDisk.createAsync(path), path),
    openWrite: (path) => {
      const fd = systemDisk.openWrite(path);
      return fd === undefined ? undefined : this.opened(fd, path);
    },
    writeSync: (fd, parts, position) => {
      this.tookUs += 50_000;
      return systemDisk.writeSync(fd, parts, position);
    },
    write: async (fd, parts, position) => {
      this.tookUs += 50_000;
      if (this.held && this.paths.get(fd)?.includes(`/${this.held.folder}/`)) {
        this.asked();
        await this.held.until;
      }
      return systemDisk.write(fd, parts, position);
    },
  };

  /** What came first: the answer to this question, or what it writes there. */
  async orderOf<T>(folder: string, question: () => Promise<T>): Promise<[T, string[]]> {
    const order: string[] = [];
    let release = (): void => undefined;
    const asked = new Promise<void>((resolve) => (this.asked = resolve));
    this.held = { folder, until: new Promise((resolve) => (release = resolve)) };
    const answering = question().finally(() => order.push('answered'));
    await asked;
    await turn();
    order.push('written');
    this.held = undefined;
    release();
    return [await answering, order];
  }

  private opened(fd: number, path: string): number {
    this.paths.set(fd, path);
    return fd;
  }
}

it('[H91] a start, a completion and its acknowledgement are answered when they are written', async () => {
  const slow = new SlowDisk();
  const api = await inProcess({ disk: slow.disk, clock: slow.clock });
  await waitFor(api, await startProcess(api, { command: 'true' }), closed);
  const last = ['written', 'answered'];
  const [, start] = await slow.orderOf('journals', () => api.start(OWNER, { command: 'true' }));
  expect(start).toEqual(last);
  await api.completions(OWNER, { waitMs: 60_000 });
  const [{ completions }, told] = await slow.orderOf('feed', async () => {
    const waiting = api.completions(OWNER, { after: 2, waitMs: 60_000 });
    await api.start(OWNER, { command: 'true' });
    return waiting;
  });
  expect([completions.map(({ number }) => number), told]).toEqual([[3], last]);
  const [answer, acknowledged] = await slow.orderOf('feed', () =>
    api.acknowledge(OWNER, { numbers: [1, 2, 3] }),
  );
  expect([answer, acknowledged]).toEqual([{ acknowledged: 3 }, last]);
});

it('[J41] a process that was removed does not come back when its keeper is killed the moment after', async () => {
  const folder = temporaryFolder();
  // What is left to a thread is not done any more.
  const disk: Disk = { ...systemDisk, removeInBackground: () => undefined };
  const api = await inProcess({ folder, disk });
  const { process } = await api.start(OWNER, { command: 'echo ready; exec sleep 100' });
  await waitFor(api, process.id, { kind: 'text', text: 'ready' });
  // Held by us, its output stays open when it has ended: its journal can still grow.
  const held = openSync(`/proc/${process.pid}/fd/1`, 'w');
  onCleanup(() => closeSync(held));
  await api.remove(OWNER, { id: process.id, force: true });
  const left = temporaryFolder();
  cpSync(folder, left, { recursive: true });
  const next = await inProcess({ folder: left });
  expect((await next.list(OWNER, {})).processes).toEqual([]);
});

it('[H103] a file that the disk does not let go is told to who removes it, and goes with the next one', async () => {
  const folder = temporaryFolder();
  const before = await inProcess({ folder });
  // Too large to serve the next start.
  const command = "head -c 40000 /dev/zero | tr '\\0' x";
  const ids: string[] = [];
  for (let turn = 0; turn < 2; turn += 1) {
    const id = await startProcess(before, { command });
    await waitFor(before, id, closed);
    ids.push(id);
  }
  const [first = '', second = ''] = ids;
  await before.close();
  const files = (): string[] => readdirSync(join(folder, 'journals')).filter(isLarge);
  const isLarge = (name: string): boolean => statSync(join(folder, 'journals', name)).size > 40_000;
  expect(files()).toHaveLength(2);
  let refuses = true;
  const remove: Disk['remove'] = (path) => {
    if (refuses) throw Object.assign(new Error(`EACCES: ${path}`), { code: 'EACCES' });
    systemDisk.remove(path);
  };
  const noted: string[] = [];
  const api = await inProcess({
    folder,
    disk: { ...systemDisk, remove },
    transition: ({ event, reason }) => void noted.push(`${event}: ${reason}`),
  });
  const refused = await failure(api.remove(OWNER, { id: first }));
  expect(refused).toMatchObject({ code: 'storage_unavailable', details: { errno: 'EACCES' } });
  expect(refused.message).toContain(join(folder, 'journals'));
  expect(noted).toEqual([expect.stringMatching(/^forget: removed by .*EACCES/)]);
  expect((await failure(api.get(OWNER, { id: first }))).code).toBe('not_found');
  // The same where its journal has not been put away.
  const third = await startProcess(api, { command });
  await waitFor(api, third, closed);
  expect((await failure(api.remove(OWNER, { id: third }))).code).toBe('storage_unavailable');
  expect(files()).toHaveLength(3);
  refuses = false;
  await api.remove(OWNER, { id: second });
  expect(files()).toHaveLength(0);
});
