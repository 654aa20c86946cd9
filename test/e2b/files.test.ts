// Files, folders and watches with the unmodified E2B SDK.

import { execFile } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { FilesystemEvent, Sandbox } from 'e2b';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readParts, type Part } from '../../src/server/e2b/files/multipart.ts';
import { problem, serveE2b, type E2bServed } from '../support/e2b-client.ts';

const execute = promisify(execFile);
let served: E2bServed;
let sandbox: Sandbox;
let home: string;

beforeAll(async () => {
  served = await serveE2b();
  home = mkdtempSync(join(tmpdir(), 'holdfast-e2b-'));
  process.env['HOME'] = home;
  sandbox = await served.create();
});

afterAll(async () => {
  await served.stop();
  rmSync(home, { recursive: true, force: true });
});

describe('a file', () => {
  it('[E230] is written and read whole: text, bytes, a stream, nothing; packed or not', async () => {
    const { files } = sandbox;
    const bytes = Uint8Array.from({ length: 1_000_000 }, (_, at) => (at * 7) % 256);
    expect(await files.write('a/b/text.txt', 'grüße\r\n--x')).toMatchObject({
      name: 'text.txt',
      path: join(home, 'a/b/text.txt'),
    });
    expect(await files.read('a/b/text.txt')).toBe('grüße\r\n--x');
    await files.write('bytes', bytes.buffer);
    expect(Buffer.compare(readFileSync(join(home, 'bytes')), bytes)).toBe(0);
    expect(Buffer.compare(await files.read('bytes', { format: 'bytes' }), bytes)).toBe(0);
    await files.write('stream', new Blob([bytes]).stream());
    expect(Buffer.compare(readFileSync(join(home, 'stream')), bytes)).toBe(0);
    await files.write('packed', 'x'.repeat(100_000), { gzip: true });
    expect(readFileSync(join(home, 'packed'), 'utf8')).toBe('x'.repeat(100_000));
    expect(await files.read('packed', { gzip: true })).toBe('x'.repeat(100_000));
    await files.write('empty', '');
    expect(await files.read('empty')).toBe('');
    await files.write('packed', 'shorter');
    expect(await files.read('packed')).toBe('shorter');
  });

  it('[E230] of several in one request goes to its own path; the same path twice is refused', async () => {
    const { files } = sandbox;
    const two = [
      { path: 'many/one "1".txt', data: '1' },
      { path: join(home, 'many/two'), data: '2' },
    ];
    expect(await files.write(two)).toHaveLength(2);
    expect(await files.read('many/one "1".txt')).toBe('1');
    expect(await files.read('many/two')).toBe('2');
    const twice = ['1', '2'].map((data) => ({ path: 'same', data }));
    expect((await problem(files.write(twice))).message).toContain('same path');
  });

  it('[E231] that is not there or is a folder is an error of its kind', async () => {
    const { files } = sandbox;
    mkdirSync(join(home, 'folder'));
    expect((await problem(files.read('nothing'))).name).toBe('FileNotFoundError');
    expect((await problem(files.read('folder'))).name).toBe('InvalidArgumentError');
    expect((await problem(files.write('folder', 'x'))).name).toBe('InvalidArgumentError');
    expect((await problem(files.write('x', 'x', { metadata: { a: 'b' } }))).message).toContain(
      'not kept',
    );
  });

  it('[E232] is described: kind, size, mode, owner, link; folders are listed by name and depth', async () => {
    const { files } = sandbox;
    mkdirSync(join(home, 'tree/b/c/d'), { recursive: true });
    writeFileSync(join(home, 'tree/a'), '12345');
    chmodSync(join(home, 'tree/a'), 0o640);
    chmodSync(join(home, 'tree/b'), 0o755);
    symlinkSync('a', join(home, 'tree/link'));
    const flat = await files.list('tree');
    expect(flat.map(({ name }) => name)).toEqual(['a', 'b', 'link']);
    expect(flat[0]).toMatchObject({
      type: 'file',
      size: 5,
      mode: 0o640,
      permissions: '-rw-r-----',
      path: join(home, 'tree/a'),
    });
    expect(flat[1]).toMatchObject({ type: 'dir', permissions: 'drwxr-xr-x' });
    expect(flat[2]).toMatchObject({ type: 'file', symlinkTarget: join(home, 'tree/a') });
    const deep = await files.list('tree', { depth: 3 });
    expect(deep.map(({ path }) => path.slice(home.length))).toEqual([
      '/tree/a',
      '/tree/b',
      '/tree/b/c',
      '/tree/b/c/d',
      '/tree/link',
    ]);
    expect((await problem(files.list('tree/a'))).name).toBe('InvalidArgumentError');
    expect((await problem(files.list('nope'))).name).toBe('FileNotFoundError');
  });

  it('[E233] is moved and removed; folders are made once', async () => {
    const { files } = sandbox;
    expect([await files.makeDir('new/deep'), await files.makeDir('new/deep')]).toEqual([
      true,
      false,
    ]);
    await files.write('new/from', 'x');
    expect(await files.rename('new/from', 'other/to')).toMatchObject({ name: 'to', size: 1 });
    expect([await files.exists('new/from'), await files.exists('other/to')]).toEqual([false, true]);
    expect((await problem(files.rename('new/from', 'y'))).name).toBe('FileNotFoundError');
    await files.remove('other');
    await files.remove('other');
    expect(await files.exists('other')).toBe(false);
  });

  it('[E234] of the state directory is out of reach, by any name', async () => {
    const { files } = sandbox;
    symlinkSync(served.home, join(home, 'state'));
    for (const path of [served.home, join(home, 'state')]) {
      expect((await problem(files.read(join(path, 'e2b.key')))).message).toContain('403');
      expect((await problem(files.write(join(path, 'x'), 'x'))).message).toContain('403');
      expect((await problem(files.list(path))).message).toContain('permission_denied');
      expect((await problem(files.getInfo(join(path, 'e2b.key')))).message).toContain(
        'permission_denied',
      );
      expect((await problem(files.remove(join(path, 'e2b')))).message).toContain(
        'permission_denied',
      );
      expect((await problem(files.rename(join(path, 'e2b.key'), 'k'))).message).toContain(
        'permission_denied',
      );
    }
  });

  it('[E235] is fetched and sent by a signed address, until that is changed or too old', async () => {
    await sandbox.files.write('signed.txt', 'signed');
    const get = async (...words: string[]): Promise<string> =>
      (await execute('curl', ['-s', '-w', ' %{http_code}', ...words])).stdout;
    const url = await sandbox.downloadUrl('signed.txt');
    expect(await get(url)).toBe('signed 200');
    const timed = await sandbox.downloadUrl('signed.txt', { useSignatureExpiration: 60 });
    expect(await get(timed)).toBe('signed 200');
    const old = await sandbox.downloadUrl('signed.txt', { useSignatureExpiration: -60 });
    expect(await get(old)).toContain('already expired');
    expect(await get(url.replace('signed.txt', 'packed'))).toMatch(/ 401$/);
    expect(await get(`${served.server.url}/files?path=signed.txt`)).toMatch(/ 401$/);
    const upload = await sandbox.uploadUrl('up.txt');
    expect(await get('-F', `file=@${join(home, 'signed.txt')}`, upload)).toMatch(/ 200$/);
    expect(await sandbox.files.read('up.txt')).toBe('signed');
  });
});

describe('a watch', () => {
  it('[E236] tells what was created, written, renamed, removed and changed, in new folders, too', async () => {
    const { files } = sandbox;
    mkdirSync(join(home, 'watched'));
    const seen: string[] = [];
    let wake = (): void => undefined;
    const until = async (wanted: string): Promise<void> => {
      while (!seen.includes(wanted)) await new Promise<void>((resolve) => (wake = resolve));
    };
    const ended: unknown[] = [];
    const note = ({ type, name, entry }: FilesystemEvent): void => {
      seen.push(`${type} ${name}${entry ? ` ${entry.size}` : ''}`);
      wake();
    };
    const handle = await files.watchDir('watched', note, {
      recursive: true,
      timeoutMs: 0,
      onExit: (error) => void ended.push(error),
    });
    await files.write('watched/a', 'x');
    await until('create a');
    await until('write a');
    await files.rename('watched/a', 'watched/b');
    await until('rename a');
    await until('create b');
    chmodSync(join(home, 'watched/b'), 0o600);
    await until('chmod b');
    await files.write('watched/new/deep/c', 'x');
    await until('create new/deep/c');
    await files.remove('watched/b');
    await until('remove b');
    const withEntry = await files.watchDir('watched', note, { includeEntry: true });
    await files.write('watched/d', '123');
    await until('write d 3');
    await Promise.all([handle.stop(), withEntry.stop()]);
    expect((await problem(files.watchDir('nope', note))).name).toBe('FileNotFoundError');
    expect((await problem(files.watchDir('watched/d', note))).name).toBe('InvalidArgumentError');
  });
});

describe('a multipart body', () => {
  it('[E237] gives the same parts however it is cut', async () => {
    const body = Buffer.from(
      'ignored\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="a/b"\r\n\r\none\r\n--\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="c"\r\n\r\n\r\n--b--\r\n',
    );
    for (let size = 1; size < body.length; size += 1) {
      const parts: string[] = [];
      for await (const part of readParts(cut(body, size), 'b')) parts.push(await textOf(part));
      expect(parts).toEqual(['a/b: one\r\n--', 'c: ']);
    }
    const short = readParts(cut(body.subarray(0, 80), 7), 'b');
    expect(await problem(drain(short))).toMatchObject({ name: 'E2bError' });
  });
});

async function* cut(body: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < body.length; at += size) yield body.subarray(at, at + size);
}

async function textOf({ filename, content }: Part): Promise<string> {
  let text = '';
  for await (const piece of content) text += piece.toString();
  return `${filename}: ${text}`;
}

async function drain(parts: AsyncIterable<Part>): Promise<void> {
  for await (const part of parts) await textOf(part);
}
