import { execFileSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../../../test/support/hosts.ts';
import { caller, TestSession, type Answer } from '../../../../test/support/codex-session.ts';
import { isSlowRun } from '../../../../test/support/slow.ts';
import { fsMethods } from './fs.ts';

const surroundings = { env: {}, cwd: '/', userHome: '/', version: '0' };
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const uri = (path: string): string => pathToFileURL(path).href;

const missing = { code: -32004, message: 'No such file or directory (os error 2)' };
const notFolder = { code: -32603, message: 'Not a directory (os error 20)' };
const exists = { code: -32603, message: 'File exists (os error 17)' };
const loop = { code: -32603, message: 'Symbolic link loop (os error 40)' };
const denied = { code: -32600, message: 'Permission denied (os error 13)' };
const readOnly = { code: -32603, message: 'Read-only file system (os error 30)' };

interface Bench {
  readonly folder: string;
  readonly session: TestSession;
  readonly call: (method: string, params?: unknown) => Promise<Answer>;
  /** `name`: in the folder. */
  readonly on: (method: string, name: string, more?: Record<string, unknown>) => Promise<Answer>;
}

function bench(session = new TestSession(), folder = temporaryFolder()): Bench {
  const call = caller(fsMethods(surroundings), session);
  return {
    folder,
    session,
    call,
    on: (method, name, more) => call(method, { path: uri(join(folder, name)), ...more }),
  };
}

/** A file, a folder, links to both and to nothing, a pipe. */
function furnished(session?: TestSession): Bench {
  const made = bench(session);
  const { folder } = made;
  mkdirSync(join(folder, 'd'));
  writeFileSync(join(folder, 'f'), 'hi\n');
  writeFileSync(join(folder, 'd/x'), 'x\n');
  symlinkSync('f', join(folder, 'lf'));
  symlinkSync('d', join(folder, 'ld'));
  symlinkSync('nowhere', join(folder, 'dang'));
  makePipe(join(folder, 'fifo'));
  return made;
}

describe('paths', () => {
  it('[CF1] a path is a file URI of this host, percent-encoded, with its dots resolved', async () => {
    const { call, folder } = bench();
    const canonical = async (path: unknown): Promise<Answer> => call('fs/canonicalize', { path });
    writeFileSync(join(folder, 'a b%é'), '');
    const name = '/a%20b%25%C3%A9';
    expect(await canonical(uri(folder) + name)).toEqual({ path: uri(folder) + name });
    expect(await canonical(`${uri(folder)}/x/%2e%2e/a%20b%25%c3%a9/`)).toEqual({
      path: uri(folder) + name,
    });
    for (const root of ['file://localhost/', 'FILE:///', 'file:/', 'file:///..//.'])
      expect(await canonical(root)).toEqual({ path: 'file:///' });
    // An escaped slash separates like any other, and climbs nowhere that a plain one would not.
    expect(await canonical(`${uri(folder)}/x%2f..%2fa%20b%25%C3%A9`)).toEqual({
      path: uri(folder) + name,
    });
  });

  it('[CF1] anything else is refused in the words of codex', async () => {
    const { call } = bench();
    const refusals: [unknown, number, string][] = [
      ['/tmp', -32602, 'invalid URI: relative URL without a base'],
      ['', -32602, 'invalid URI: relative URL without a base'],
      ['http://x/y', -32602, 'unsupported path URI scheme `http`'],
      ['file:///tmp?x=1', -32602, 'query parameters are not allowed in path URIs'],
      ['file:///tmp#f', -32602, 'fragments are not allowed in path URIs'],
      ['file:///tmp/a%00b', -32602, "'file:///tmp/a%00b' is invalid on 'linux'"],
      ['file://host/tmp', -32600, "'file://host/tmp' is invalid on 'linux'"],
      ['file:///C:/x', -32600, "'file:///C:/x' is invalid on 'linux'"],
      [5, -32602, 'invalid type: number, expected a string'],
    ];
    for (const [path, code, message] of refusals)
      expect(await call('fs/canonicalize', { path })).toEqual({ code, message });
    expect(await call('fs/canonicalize', {})).toEqual({
      code: -32602,
      message: 'missing field `path`',
    });
  });

  it('[CF1] names that are not UTF-8 are named, listed and walked as they are', async () => {
    const { call, folder } = bench();
    const name = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff, 0x61])]);
    writeFileSync(name, 'bytes');
    const path = `${uri(folder)}/%FFa`;
    expect(await call('fs/readFile', { path })).toEqual({ dataBase64: base64('bytes') });
    const options = {
      maxDepth: 1,
      maxDirectories: 1,
      maxEntries: 9,
      followDirectorySymlinks: false,
    };
    expect(await call('fs/walk', { path: uri(folder), options })).toMatchObject({
      entries: [{ path, kind: 'file' }],
    });
  });
});

describe('files', () => {
  it('[CF2] a file is written whole, in place, and read whole', async () => {
    const { on, folder } = furnished();
    expect(await on('fs/writeFile', 'f', { dataBase64: base64('hello, longer') })).toEqual({});
    expect(await on('fs/writeFile', 'f', { dataBase64: base64('short') })).toEqual({});
    expect(await on('fs/readFile', 'f', { sandbox: null })).toEqual({
      dataBase64: base64('short'),
    });
    expect(await on('fs/writeFile', 'dang', { dataBase64: base64('through') })).toEqual({});
    expect(readFileSync(join(folder, 'nowhere'), 'utf8')).toBe('through');
    expect(await on('fs/writeFile', 'nodir/f', { dataBase64: '' })).toEqual(missing);
    expect(await on('fs/writeFile', 'd', { dataBase64: '' })).toEqual({
      code: -32603,
      message: 'Is a directory (os error 21)',
    });
    expect(await on('fs/writeFile', 'fifo', { dataBase64: '' })).toEqual({
      code: -32603,
      message: 'No such device or address (os error 6)',
    });
  });

  it('[CF2] base64 that is not standard and padded is refused with what is wrong with it', async () => {
    const { on } = bench();
    const problems: [string, string][] = [
      ['%%', 'Invalid symbol 37, offset 0.'],
      ['YQ', 'Invalid padding'],
      ['YQ=', 'Invalid padding'],
      ['YR==', 'Invalid last symbol 82, offset 1.'],
      ['YWJj\n', 'Invalid symbol 10, offset 4.'],
      ['YW-_', 'Invalid symbol 45, offset 2.'],
      ['YQ==YQ==', 'Invalid symbol 61, offset 2.'],
      ['A', 'Invalid input length: 1'],
    ];
    for (const [dataBase64, problem] of problems)
      expect(await on('fs/writeFile', 'b', { dataBase64 })).toEqual({
        code: -32600,
        message: `fs/writeFile requires valid base64 dataBase64: ${problem}`,
      });
  });

  it('[CF2] only regular files are read; a pipe is refused without waiting for it', async () => {
    const { on, folder } = furnished();
    for (const name of ['d', 'fifo'])
      expect(await on('fs/readFile', name)).toEqual({
        code: -32600,
        message: `path \`${join(folder, name)}\` is not a file`,
      });
    expect(await on('fs/readFile', 'none')).toEqual(missing);
    expect(await on('fs/readFile', 'dang')).toEqual(missing);
    expect(await on('fs/readFile', 'f/y')).toEqual(notFolder);
    expect(await on('fs/readFile', 'f/')).toEqual({ dataBase64: base64('hi\n') });
  });

  it('[CF2] a file beyond the limit is refused before it is read, and one whose size lies is read to its end', async () => {
    const { on, call, folder } = bench();
    writeFileSync(join(folder, 'big'), '');
    truncateSync(join(folder, 'big'), 512 * 1024 * 1024 + 1);
    expect(await on('fs/readFile', 'big')).toEqual({
      code: -32600,
      message: 'file is too large to read: limit is 536870912 bytes',
    });
    const { dataBase64 } = await call('fs/readFile', { path: 'file:///proc/meminfo' });
    expect(Buffer.from(String(dataBase64), 'base64').toString()).toContain('MemTotal');
  });

  it('[CF2] base64 of a file of many pieces is the base64 of the file', async () => {
    const { on, folder } = bench();
    const bytes = Buffer.alloc(7 * 1024 * 1024 + 1, 'abcdefghijk');
    writeFileSync(join(folder, 'f'), bytes);
    const { dataBase64 } = await on('fs/readFile', 'f');
    expect(Buffer.from(String(dataBase64), 'base64').equals(bytes)).toBe(true);
    expect(String(dataBase64)).not.toMatch(/=./);
  });

  it('[CF2] metadata tell kind, size and times, and whether the name is a link', async () => {
    const { on } = furnished();
    expect(await on('fs/getMetadata', 'f')).toMatchObject({
      isDirectory: false,
      isFile: true,
      isSymlink: false,
      size: 3,
    });
    expect(await on('fs/getMetadata', 'lf')).toMatchObject({
      isFile: true,
      isSymlink: true,
      size: 3,
    });
    expect(await on('fs/getMetadata', 'd')).toMatchObject({ isDirectory: true, isFile: false });
    expect(await on('fs/getMetadata', 'fifo')).toMatchObject({ isDirectory: false, isFile: false });
    expect(await on('fs/getMetadata', 'dang')).toEqual(missing);
    expect(await on('fs/getMetadata', 'none')).toEqual(missing);
    const { modifiedAtMs } = await on('fs/getMetadata', 'f');
    expect(Math.abs(Number(modifiedAtMs) - Date.now())).toBeLessThan(60_000);
    expect(Number.isInteger(modifiedAtMs)).toBe(true);
  });
});

describe('links', () => {
  it('[CF3] a call that forbids links meets none, neither at the end nor on the way', async () => {
    const { on, folder } = furnished();
    const strict = { followSymlinks: false, dataBase64: base64('no') };
    for (const method of ['fs/readFile', 'fs/writeFile']) {
      expect(await on(method, 'lf', strict)).toEqual(loop);
      expect(await on(method, 'dang', strict)).toEqual(loop);
      expect(await on(method, 'ld/x', strict)).toEqual(notFolder);
    }
    expect(await on('fs/getMetadata', 'lf', strict)).toEqual({
      code: -32600,
      message: 'path contains a symbolic link',
    });
    expect(await on('fs/getMetadata', 'ld/x', strict)).toEqual(notFolder);
    expect(await on('fs/readFile', 'd', strict)).toEqual({
      code: -32600,
      message: 'path is not a regular file',
    });
    expect(await on('fs/createDirectory', 'ld/n', strict)).toEqual(notFolder);
    expect(await on('fs/createDirectory', 'ld', strict)).toEqual(notFolder);
    expect(await on('fs/remove', 'ld/x', strict)).toEqual(notFolder);
    expect(await on('fs/writeFile', 'new', strict)).toEqual({});
    expect(await on('fs/readFile', 'new', strict)).toEqual({ dataBase64: base64('no') });
    expect(readdirSync(join(folder, 'd'))).toEqual(['x']);
    expect(existsSync(join(folder, 'nowhere'))).toBe(false);
  });

  it('[CF3] a folder that is constantly replaced by a link never leads a strict write elsewhere', async () => {
    const { on, folder } = bench();
    mkdirSync(join(folder, 'real'));
    mkdirSync(join(folder, 'outside'));
    mkdirSync(join(folder, 'way'));
    // Swaps a folder and a link under one name, as fast as it can, until it is stopped.
    const script = `const fs=require('fs');process.chdir(${JSON.stringify(folder)});
      fs.symlinkSync('outside','link');process.on('SIGTERM',()=>process.exit(0));console.log('on');
      const swap=()=>{for(let i=0;i<200;i++){fs.renameSync('way','kept');fs.renameSync('link','way');
        fs.renameSync('way','link');fs.renameSync('kept','way');}setImmediate(swap)};swap();`;
    const { spawn } = await import('node:child_process');
    const swapper = spawn(process.execPath, ['-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await new Promise((resolve) => {
      swapper.stdout.once('data', resolve);
    });
    const seen = new Set<unknown>();
    for (let round = 0; round < 400; round += 1) {
      const answer = await on('fs/writeFile', 'way/w', {
        followSymlinks: false,
        dataBase64: base64('x'),
      });
      seen.add(answer['message'] ?? 'written');
    }
    const ended = new Promise((resolve) => {
      swapper.once('exit', resolve);
    });
    swapper.kill();
    await ended;
    expect(readdirSync(join(folder, 'outside'))).toEqual([]);
    for (const outcome of seen)
      expect(['written', missing.message, notFolder.message]).toContain(outcome);
  }, 30_000);
});

describe('folders', () => {
  it('[CF4] folders are made, with their parents unless that is not wanted', async () => {
    const { on, folder } = furnished();
    expect(await on('fs/createDirectory', 'a/b/c')).toEqual({});
    expect(await on('fs/createDirectory', 'a/b/c')).toEqual({});
    expect(lstatSync(join(folder, 'a/b/c')).isDirectory()).toBe(true);
    expect(await on('fs/createDirectory', 'x/y', { recursive: false })).toEqual(missing);
    expect(await on('fs/createDirectory', 'a', { recursive: false })).toEqual(exists);
    expect(await on('fs/createDirectory', 'ld/n1/n2')).toEqual({});
    expect(existsSync(join(folder, 'd/n1/n2'))).toBe(true);
    expect(await on('fs/createDirectory', 'ld')).toEqual({});
    for (const name of ['f', 'lf', 'dang'])
      expect(await on('fs/createDirectory', name)).toEqual(exists);
    expect(await on('fs/createDirectory', 'f/x')).toEqual(notFolder);
  });

  it('[CF4] a folder is listed with links as what they lead to, and those that lead nowhere left out', async () => {
    const { on, call, folder } = furnished();
    expect(await call('fs/readDirectory', { path: uri(folder) })).toEqual({
      entries: [
        { fileName: 'd', isDirectory: true, isFile: false },
        { fileName: 'f', isDirectory: false, isFile: true },
        { fileName: 'fifo', isDirectory: false, isFile: false },
        { fileName: 'ld', isDirectory: true, isFile: false },
        { fileName: 'lf', isDirectory: false, isFile: true },
      ],
    });
    expect(await on('fs/readDirectory', 'f')).toEqual(notFolder);
    expect(await on('fs/readDirectory', 'none')).toEqual(missing);
  });

  it.runIf(isSlowRun)('[CF4] a folder with more than 50,000 entries is not listed', async () => {
    const { on, folder } = bench();
    mkdirSync(join(folder, 'many'));
    writeFileSync(join(folder, 'one'), '');
    // Links: to make a file of its own for each takes ten times as long.
    for (let name = 1; name <= 50_001; name += 1)
      linkSync(join(folder, 'one'), join(folder, 'many', String(name)));
    expect(await on('fs/readDirectory', 'many')).toEqual({
      code: -32603,
      message: 'fs/readDirectory returned 50001 entries; limit is 50000',
    });
    rmSync(join(folder, 'many/7'));
    const { entries } = await on('fs/readDirectory', 'many');
    expect(entries).toHaveLength(50_000);
  });
});

describe('walking', () => {
  const usual = {
    maxDepth: 5,
    maxDirectories: 100,
    maxEntries: 100,
    followDirectorySymlinks: false,
  };

  function forest(): { walk: (options?: object) => Promise<[unknown, unknown]> } & Bench {
    const made = bench();
    const { folder, on } = made;
    mkdirSync(join(folder, 't/.hid'), { recursive: true });
    mkdirSync(join(folder, 't/sub/deep/er'), { recursive: true });
    writeFileSync(join(folder, 't/.hid/a'), '');
    writeFileSync(join(folder, 't/sub/b'), '');
    symlinkSync('sub', join(folder, 't/lsub'));
    symlinkSync('sub/b', join(folder, 't/lb'));
    symlinkSync('..', join(folder, 't/sub/up'));
    symlinkSync('gone', join(folder, 't/gone'));
    const root = `${uri(folder)}/t/`;
    const walk = async (options: object = {}): Promise<[unknown, unknown]> => {
      const answer = await on('fs/walk', 't', { options: { ...usual, ...options } });
      const entries = answer['entries'] as { path: string; kind: string }[];
      expect(answer['errors']).toEqual([]);
      const names = entries.map(
        ({ path, kind }) => path.slice(root.length) + (kind === 'directory' ? '/' : ''),
      );
      return [names.join(' '), answer['truncated']];
    };
    return { ...made, walk };
  }

  it('[CF5] a tree is walked breadth first, sorted, links left out', async () => {
    const { walk } = forest();
    expect(await walk()).toEqual(['.hid/ sub/ .hid/a sub/b sub/deep/ sub/deep/er/', false]);
    expect(await walk({ pruneHiddenDirectories: true })).toEqual([
      '.hid/ sub/ sub/b sub/deep/ sub/deep/er/',
      false,
    ]);
    expect(await walk({ maxDepth: 0 })).toEqual(['.hid/ sub/', false]);
    expect(await walk({ maxDepth: 1 })).toEqual(['.hid/ sub/ .hid/a sub/b sub/deep/', false]);
  });

  it('[CF5] links to folders are followed when asked, each folder once', async () => {
    const { walk } = forest();
    expect(await walk({ followDirectorySymlinks: true })).toEqual([
      '.hid/ lsub/ sub/ .hid/a lsub/b lsub/deep/ lsub/up/ lsub/deep/er/',
      false,
    ]);
  });

  it('[CF5] bounds cut and say so; beyond the maxima they are refused', async () => {
    const { walk, on } = forest();
    expect(await walk({ maxDirectories: 1 })).toEqual(['.hid/ sub/', true]);
    expect(await walk({ maxDirectories: 2 })).toEqual(['.hid/ sub/ .hid/a', true]);
    // Names that are left out count too.
    expect(await walk({ maxEntries: 3 })).toEqual(['.hid/', true]);
    const zero = { code: -32600, message: 'filesystem walk limits must be greater than zero' };
    expect(await on('fs/walk', 't', { options: { ...usual, maxEntries: 0 } })).toEqual(zero);
    expect(await on('fs/walk', 't', { options: { ...usual, maxDirectories: 0 } })).toEqual(zero);
    const beyond = {
      code: -32600,
      message: 'filesystem walk limits exceed maximums: depth=64, directories=10000, entries=50000',
    };
    for (const over of [{ maxDepth: 65 }, { maxDirectories: 10_001 }, { maxEntries: 50_001 }])
      expect(await on('fs/walk', 't', { options: { ...usual, ...over } })).toEqual(beyond);
    expect(await on('fs/walk', 't')).toEqual({ code: -32602, message: 'missing field `options`' });
    expect(await on('fs/walk', 't', { options: {} })).toEqual({
      code: -32602,
      message: 'missing field `maxDepth`',
    });
  });

  it('[CF5] what is no folder has nothing in it, what is not there is missing', async () => {
    const { on } = furnished();
    const options = usual;
    const empty = { entries: [], errors: [], truncated: false };
    for (const name of ['f', 'fifo', 'ld'])
      expect(await on('fs/walk', name, { options })).toEqual(empty);
    expect(await on('fs/walk', 'none', { options })).toEqual(missing);
    const followed = { ...usual, followDirectorySymlinks: true };
    expect(await on('fs/walk', 'ld', { options: followed })).toMatchObject({
      entries: [{ kind: 'file' }],
    });
  });

  it('[CF5] the answer stays below 4 MiB and says that it was cut', async () => {
    const { on, folder } = bench();
    // Each answer names the whole path: few files are enough.
    const long = join(folder, ...Array<string>(4).fill('n'.repeat(200)));
    mkdirSync(long, { recursive: true });
    execFileSync('sh', ['-c', 'seq -f %0200g 1 5000 | xargs touch'], { cwd: long });
    const answer = await on('fs/walk', '', { options: { ...usual, maxEntries: 50_000 } });
    expect(answer['truncated']).toBe(true);
    const size = JSON.stringify(answer).length;
    expect(size).toBeLessThan(4.3 * 1024 * 1024);
    expect(size).toBeGreaterThan(3 * 1024 * 1024);
  });
});

describe('removing', () => {
  it('[CF6] files, links and trees are removed, links not followed', async () => {
    const { on, folder } = furnished();
    expect(await on('fs/remove', 'lf')).toEqual({});
    expect(await on('fs/remove', 'ld')).toEqual({});
    expect(readdirSync(folder).sort()).toEqual(['d', 'dang', 'f', 'fifo']);
    symlinkSync('../f', join(folder, 'd/out'));
    mkdirSync(join(folder, 'd/e/g'), { recursive: true });
    expect(await on('fs/remove', 'd', { recursive: false })).toEqual({
      code: -32603,
      message: 'Directory not empty (os error 39)',
    });
    expect(await on('fs/remove', 'd', { followSymlinks: false })).toEqual({});
    expect(await on('fs/remove', 'fifo', { recursive: false })).toEqual({});
    expect(readdirSync(folder).sort()).toEqual(['dang', 'f']);
  });

  it('[CF6] what is missing counts as removed unless that is not wanted', async () => {
    const { on } = furnished();
    expect(await on('fs/remove', 'none')).toEqual({});
    expect(await on('fs/remove', 'none/deeper')).toEqual({});
    expect(await on('fs/remove', 'none', { force: false })).toEqual(missing);
    expect(await on('fs/remove', 'f/x')).toEqual(notFolder);
  });

  it('[CF6] a folder of thousands is removed, and the root is not', async () => {
    const { on, call, folder } = bench();
    mkdirSync(join(folder, 'many'));
    execFileSync('sh', ['-c', 'seq 1 2500 | xargs touch'], { cwd: join(folder, 'many') });
    expect(await on('fs/remove', 'many')).toEqual({});
    expect(existsSync(join(folder, 'many'))).toBe(false);
    // In a sandbox that would not allow it either: nothing is lost should the first check ever fail.
    const entries = [{ path: { type: 'special', value: { kind: 'root' } }, access: 'read' }];
    const sandbox = {
      permissions: {
        type: 'managed',
        file_system: { type: 'restricted', entries },
        network: 'restricted',
      },
      windowsSandboxLevel: 'disabled',
    };
    expect(await call('fs/remove', { path: 'file:///', sandbox })).toEqual({
      code: -32603,
      message: 'Device or resource busy (os error 16)',
    });
  });
});

describe('copying', () => {
  const copy = (
    { call, folder }: Bench,
    from: string,
    to: string,
    recursive: boolean,
  ): Promise<Answer> =>
    call('fs/copy', {
      sourcePath: uri(join(folder, from)),
      destinationPath: uri(join(folder, to)),
      recursive,
    });

  it('[CF7] a file is copied over what is there, through links, with its mode', async () => {
    const made = furnished();
    const { folder } = made;
    execFileSync('chmod', ['640', join(folder, 'f')]);
    expect(await copy(made, 'f', 'g', false)).toEqual({});
    expect(lstatSync(join(folder, 'g')).mode & 0o777).toBe(0o640);
    writeFileSync(join(folder, 'long'), 'much longer than the source');
    expect(await copy(made, 'f', 'long', false)).toEqual({});
    expect(readFileSync(join(folder, 'long'), 'utf8')).toBe('hi\n');
    expect(await copy(made, 'f', 'dang', false)).toEqual({});
    expect(readFileSync(join(folder, 'nowhere'), 'utf8')).toBe('hi\n');
    // Onto itself: it stays as it is.
    expect(await copy(made, 'f', 'f', false)).toEqual({});
    expect(readFileSync(join(folder, 'f'), 'utf8')).toBe('hi\n');
    expect(await copy(made, 'f', 'd', false)).toEqual({
      code: -32603,
      message: 'Is a directory (os error 21)',
    });
    expect(await copy(made, 'none', 'x', false)).toEqual(missing);
    expect(await copy(made, 'f', 'none/x', false)).toEqual(missing);
  });

  it('[CF7] a tree is copied with links as links and without pipes', async () => {
    const made = furnished();
    const { folder } = made;
    symlinkSync('nope', join(folder, 'd/dang'));
    symlinkSync('../f', join(folder, 'd/lf'));
    mkdirSync(join(folder, 'd/e'));
    makePipe(join(folder, 'd/e/pipe'));
    execFileSync('chmod', ['500', join(folder, 'd/e')]);
    expect(await copy(made, 'd', 'd2', true)).toEqual({});
    expect(readdirSync(join(folder, 'd2')).sort()).toEqual(['dang', 'e', 'lf', 'x']);
    expect(readlinkSync(join(folder, 'd2/dang'))).toBe('nope');
    expect(readFileSync(join(folder, 'd2/x'), 'utf8')).toBe('x\n');
    expect(readdirSync(join(folder, 'd2/e'))).toEqual([]);
    expect(lstatSync(join(folder, 'd2/e')).mode & 0o777).toBe(0o500);
    expect(await copy(made, 'ld', 'ld2', true)).toEqual({});
    expect(readlinkSync(join(folder, 'ld2'))).toBe('d');
    execFileSync('chmod', ['-R', '700', join(folder, 'd'), join(folder, 'd2')]);
  });

  it('[CF7] what cannot be copied is refused: a folder without recursive, into itself, onto another, a pipe', async () => {
    const made = furnished();
    expect(await copy(made, 'd', 'd2', false)).toEqual({
      code: -32600,
      message: 'fs/copy requires recursive: true when sourcePath is a directory',
    });
    const itself = {
      code: -32600,
      message: 'fs/copy cannot copy a directory to itself or one of its descendants',
    };
    expect(await copy(made, 'd', 'd/in', true)).toEqual(itself);
    expect(await copy(made, 'd', 'ld/in', true)).toEqual(itself);
    expect(await copy(made, 'd', 'd', true)).toEqual(itself);
    expect(await copy(made, 'd', 'f', true)).toEqual(exists);
    expect(await copy(made, 'fifo', 'x', false)).toEqual({
      code: -32600,
      message: 'fs/copy only supports regular files, directories, and symlinks',
    });
    const { call, folder } = made;
    const half = { sourcePath: uri(join(folder, 'f')), destinationPath: uri(join(folder, 'g')) };
    expect(await call('fs/copy', half)).toEqual({
      code: -32602,
      message: 'missing field `recursive`',
    });
  });
});

describe('open files (45)', () => {
  it('[CF8] blocks are read in any order; a short one is the end', async () => {
    const { on, call, folder } = bench();
    writeFileSync(join(folder, 'f'), 'hello');
    expect(await on('fs/open', 'f', { handleId: 'h1' })).toEqual({ handleId: 'h1' });
    const read = (offset: number, len: number): Promise<Answer> =>
      call('fs/readBlock', { handleId: 'h1', offset, len });
    expect(await read(1, 3)).toEqual({ chunk: base64('ell'), eof: false });
    expect(await read(0, 100)).toEqual({ chunk: base64('hello'), eof: true });
    expect(await read(0, 5)).toEqual({ chunk: base64('hello'), eof: false });
    expect(await read(5, 5)).toEqual({ chunk: '', eof: true });
    expect(await read(99, 5)).toEqual({ chunk: '', eof: true });
    const length = {
      code: -32600,
      message: 'file read block length must be between 1 and 1048576',
    };
    expect(await read(0, 0)).toEqual(length);
    expect(await read(0, 1_048_577)).toEqual(length);
    expect(await read(0, 1_048_576)).toEqual({ chunk: base64('hello'), eof: true });
  });

  it('[CF8] a handle goes on meaning its file when the name is given to another', async () => {
    const { on, call, folder } = bench();
    writeFileSync(join(folder, 'f'), 'old');
    await on('fs/open', 'f', { handleId: 'h' });
    rmSync(join(folder, 'f'));
    writeFileSync(join(folder, 'f'), 'new');
    expect(await call('fs/readBlock', { handleId: 'h', offset: 0, len: 9 })).toEqual({
      chunk: base64('old'),
      eof: true,
    });
  });

  it('[CF8] names of handles are short, unique, and free again when closed; closing twice is fine', async () => {
    const { on, call, folder } = bench();
    writeFileSync(join(folder, 'f'), '');
    await on('fs/open', 'f', { handleId: 'h1' });
    expect(await on('fs/open', 'f', { handleId: 'h1' })).toEqual({
      code: -32600,
      message: 'file handle `h1` already exists',
    });
    expect(await call('fs/close', { handleId: 'h1' })).toEqual({});
    expect(await call('fs/close', { handleId: 'h1' })).toEqual({});
    expect(await call('fs/readBlock', { handleId: 'h1', offset: 0, len: 5 })).toEqual({
      code: -32004,
      message: 'unknown file handle `h1`',
    });
    expect(await on('fs/open', 'f', { handleId: 'h1' })).toEqual({ handleId: 'h1' });
    expect(await on('fs/open', 'f', { handleId: 'x'.repeat(32) })).toMatchObject({});
    expect(await on('fs/open', 'f', { handleId: 'x'.repeat(33) })).toEqual({
      code: -32600,
      message: 'file handle ID must not exceed 32 bytes',
    });
  });

  it('[CF8] at most 128 are open per connection, and the end of the connection closes them all', async () => {
    const made = bench();
    const { on, call, folder, session } = made;
    writeFileSync(join(folder, 'f'), '');
    const ids = Array.from({ length: 128 }, (_, index) => `h${index}`);
    await Promise.all(ids.map((handleId) => on('fs/open', 'f', { handleId })));
    const full = {
      code: -32600,
      message: 'at most 128 file handles may be open per connection',
    };
    expect(await on('fs/open', 'f', { handleId: 'more' })).toEqual(full);
    await call('fs/close', { handleId: 'h7' });
    expect(await on('fs/open', 'f', { handleId: 'more' })).toEqual({ handleId: 'more' });
    const other = bench(new TestSession(), folder);
    expect(await other.on('fs/open', 'f', { handleId: 'h1' })).toEqual({ handleId: 'h1' });
    expect(descriptorsOf(join(folder, 'f'))).toBe(129);
    session.close();
    other.session.close();
    // A call that waits for the same closing, because it comes after it.
    await call('fs/close', { handleId: 'h1' });
    await settled(() => descriptorsOf(join(folder, 'f')) === 0);
    expect(descriptorsOf(join(folder, 'f'))).toBe(0);
  });

  it('[CF8] what is no file is not opened, and nothing is waited for', async () => {
    const { on, folder } = furnished();
    for (const name of ['d', 'fifo'])
      expect(await on('fs/open', name, { handleId: 'a' })).toEqual({
        code: -32600,
        message: `path \`${join(folder, name)}\` is not a file`,
      });
    expect(await on('fs/open', 'none', { handleId: 'a' })).toEqual(missing);
    expect(await on('fs/open', 'f', { handleId: 'a', mode: 'write' })).toEqual({
      code: -32602,
      message: 'unknown variant `write`, expected `read` or `replace`',
    });
    expect(await on('fs/open', 'f', { handleId: 'a' })).toEqual({ handleId: 'a' });
  });

  it('[CF8] a file is replaced block by block, visible at once', async () => {
    const { on, call, folder } = furnished();
    const text = (): string => readFileSync(join(folder, 'f'), 'latin1');
    expect(await on('fs/open', 'f', { handleId: 'w', mode: 'replace' })).toEqual({ handleId: 'w' });
    expect(text()).toBe('');
    const write = (offset: number, chunk: string, handleId = 'w'): Promise<Answer> =>
      call('fs/writeBlock', { handleId, offset, chunk });
    expect(await write(3, base64('def'))).toEqual({});
    expect(await write(0, base64('abc'))).toEqual({});
    expect(text()).toBe('abcdef');
    const length = {
      code: -32600,
      message: 'file write block length must be between 1 and 1048576',
    };
    expect(await write(0, '')).toEqual(length);
    expect(await write(0, Buffer.alloc(1_048_577).toString('base64'))).toEqual(length);
    expect(await write(0, '%%')).toEqual({ code: -32602, message: 'Invalid symbol 37, offset 0.' });
    expect(await call('fs/writeBlock', {})).toEqual({
      code: -32602,
      message: 'missing field `handleId`',
    });
    const wrongWay = { code: -32603, message: 'Bad file descriptor (os error 9)' };
    await on('fs/open', 'd/x', { handleId: 'r' });
    expect(await write(0, base64('a'), 'r')).toEqual(wrongWay);
    expect(await call('fs/readBlock', { handleId: 'r', offset: 0, len: 1 })).toMatchObject({
      chunk: base64('x'),
    });
    // Reading that fails closes the handle.
    expect(await call('fs/readBlock', { handleId: 'w', offset: 0, len: 1 })).toEqual(wrongWay);
    expect(await write(0, base64('a'))).toEqual({
      code: -32004,
      message: 'unknown file handle `w`',
    });
  });
});

describe('watching', () => {
  const watch = (
    { call, folder }: Bench,
    watchId: number,
    gone: string[],
    there?: string,
  ): Promise<Answer> =>
    call('fs/watchMissing', {
      watchId,
      missing: gone.map((name) => uri(join(folder, name))),
      present: there === undefined ? null : uri(join(folder, there)),
    });
  const reported = ({ session }: Bench, watchId: number): Promise<unknown> =>
    session.note(
      ({ method, params }) => method === 'fs/missingChanged' && params['watchId'] === watchId,
    );
  const yes = { watching: true };
  const no = { watching: false };

  it('[CF9] the appearance of a missing path is reported once, from its first part on', async () => {
    const made = furnished();
    expect(await watch(made, 1, ['miss'])).toEqual(yes);
    writeFileSync(join(made.folder, 'miss'), '');
    await reported(made, 1);
    rmSync(join(made.folder, 'miss'));
    expect(await watch(made, 2, ['a/b/c', 'z'])).toEqual(yes);
    writeFileSync(join(made.folder, 'aa'), '');
    mkdirSync(join(made.folder, 'a'));
    await reported(made, 2);
    expect(made.session.notes.map(({ params }) => params)).toEqual([
      { watchId: 1 },
      { watchId: 2 },
    ]);
  });

  it('[CF9] a change of a present path is reported, and its removal', async () => {
    const made = furnished();
    expect(await watch(made, 1, ['q'], 'f')).toEqual(yes);
    writeFileSync(join(made.folder, 'f'), 'changed');
    await reported(made, 1);
    expect(await watch(made, 2, [], 'f')).toEqual(yes);
    rmSync(join(made.folder, 'f'));
    await reported(made, 2);
  });

  it('[CF9] what is not as described, too much, or nothing is not watched', async () => {
    const made = furnished();
    expect(await watch(made, 1, ['f'])).toEqual(no);
    expect(await watch(made, 2, [], 'none')).toEqual(no);
    expect(await watch(made, 3, [])).toEqual(no);
    expect(await watch(made, 4, ['dang'])).toEqual(no);
    expect(await watch(made, 5, ['f/x'])).toEqual(no);
    expect(
      await watch(
        made,
        6,
        Array.from({ length: 65 }, (_, index) => `m${index}`),
      ),
    ).toEqual(no);
    expect(
      await watch(
        made,
        7,
        Array.from({ length: 64 }, (_, index) => `m${index}`),
      ),
    ).toEqual(yes);
    expect(
      await made.call('fs/watchMissing', { watchId: 8, missing: ['file://elsewhere/x'] }),
    ).toEqual(no);
    expect(await made.call('fs/watchMissing', {})).toEqual({
      code: -32602,
      message: 'missing field `watchId`',
    });
    expect(await made.call('fs/watchMissing', { watchId: 1 })).toEqual({
      code: -32602,
      message: 'missing field `missing`',
    });
  });

  it('[CF9] a new watch replaces the old one; the end of the connection ends it', async () => {
    const made = furnished();
    await watch(made, 1, ['one']);
    await watch(made, 2, ['two']);
    writeFileSync(join(made.folder, 'one'), '');
    writeFileSync(join(made.folder, 'two'), '');
    await reported(made, 2);
    expect(made.session.notes).toHaveLength(1);
    await watch(made, 3, ['three']);
    made.session.close();
    expect(watchersOf()).toBe(0);
  });

  it('[CF9] a folder on the way that goes and comes back is still watched', async () => {
    const made = furnished();
    mkdirSync(join(made.folder, 'p'));
    expect(await watch(made, 1, ['p/q'])).toEqual(yes);
    rmSync(join(made.folder, 'p'), { recursive: true });
    mkdirSync(join(made.folder, 'p'));
    writeFileSync(join(made.folder, 'p/q'), '');
    await reported(made, 1);
  });
});

describe('a scoped token', () => {
  /** A home beside the token's own folder, with a secret in it. */
  function scoped(): Bench & { home: string } {
    const root = temporaryFolder();
    const home = join(root, 'state');
    mkdirSync(join(home, 'journals'), { recursive: true });
    writeFileSync(join(home, 'token'), 'secret');
    mkdirSync(join(root, 'state-of-mine'));
    symlinkSync('state', join(root, 'alias'));
    symlinkSync('state/token', join(root, 'tok'));
    symlinkSync('state/new', join(root, 'newtok'));
    symlinkSync('/etc/hostname', join(home, 'out'));
    return { ...bench(new TestSession(home), root), home };
  }

  const everyWay = ['state/token', 'alias/token', 'tok', 'state-of-mine/../state/token'];

  it('[CF10] reads nothing of the state directory, by whatever name', async () => {
    const { on, call, home } = scoped();
    for (const name of [...everyWay, 'state/out']) {
      for (const method of ['fs/readFile', 'fs/getMetadata', 'fs/canonicalize'])
        expect(await on(method, name)).toEqual(denied);
      expect(await on('fs/open', name, { handleId: 'h' })).toEqual(denied);
    }
    const pid = process.pid;
    for (const path of [
      `/proc/self/root${home}/token`,
      `/proc/${pid}/status`,
      '/proc/self/environ',
    ])
      expect(await call('fs/getMetadata', { path: uri(path) })).toEqual(denied);
    expect(await on('fs/readDirectory', 'alias')).toEqual(denied);
    expect(await on('fs/readDirectory', 'state')).toEqual(denied);
    expect(await on('fs/readFile', 'state-of-mine')).not.toEqual(denied);
  });

  it('[CF10] writes, makes, removes and copies nothing there, nor a tree around it', async () => {
    const { on, call, folder, home } = scoped();
    const data = { dataBase64: base64('mine') };
    for (const name of [...everyWay, 'newtok', 'alias/new'])
      expect(await on('fs/writeFile', name, data)).toEqual(denied);
    expect(await on('fs/open', 'newtok', { handleId: 'h', mode: 'replace' })).toEqual(denied);
    for (const name of ['state/d', 'alias/d/e']) {
      expect(await on('fs/createDirectory', name)).toEqual(denied);
    }
    for (const name of ['state', 'state/token', 'alias/journals', ''])
      expect(await on('fs/remove', name)).toEqual(denied);
    const copy = (from: string, to: string): Promise<Answer> =>
      call('fs/copy', {
        sourcePath: uri(join(folder, from)),
        destinationPath: uri(join(folder, to)),
        recursive: true,
      });
    writeFileSync(join(folder, 'f'), '');
    for (const [from, to] of [
      ['state', 'stolen'],
      ['state/token', 'stolen'],
      ['alias/token', 'stolen'],
      ['f', 'state/token'],
      ['f', 'newtok'],
      ['state-of-mine', 'alias/x'],
    ] as const)
      expect(await copy(from, to)).toEqual(denied);
    // Around it: from the parent of the state directory to somewhere outside of it.
    const elsewhere = temporaryFolder();
    expect(
      await call('fs/copy', {
        sourcePath: uri(folder),
        destinationPath: uri(join(elsewhere, 'all')),
        recursive: true,
      }),
    ).toEqual(denied);
    expect(readdirSync(elsewhere)).toEqual([]);
    expect(readFileSync(join(home, 'token'), 'utf8')).toBe('secret');
    expect(readdirSync(home).sort()).toEqual(['journals', 'out', 'token']);
  });

  it('[CF10] walks around it and does not see what happens in it', async () => {
    const { call, folder } = scoped();
    const options = {
      maxDepth: 9,
      maxDirectories: 99,
      maxEntries: 99,
      followDirectorySymlinks: true,
    };
    const answer = await call('fs/walk', { path: uri(folder), options });
    expect(JSON.stringify(answer)).not.toContain('token');
    expect(JSON.stringify(answer)).not.toContain('journals');
    expect(answer['errors']).toEqual([
      { path: uri(join(folder, 'state')), message: 'Permission denied (os error 13)' },
    ]);
    for (const name of ['state/x', 'alias/x', 'newtok/x'])
      expect(
        await call('fs/watchMissing', { watchId: 1, missing: [uri(join(folder, name))] }),
      ).toEqual({ watching: false });
  });

  it('[CF10] the admin may', async () => {
    const { folder } = scoped();
    const admin = bench(new TestSession(), folder);
    expect(await admin.on('fs/readFile', 'tok')).toEqual({ dataBase64: base64('secret') });
  });
});

describe('sandboxed calls', () => {
  const special = (kind: string, more = {}): object => ({
    type: 'special',
    value: { kind, ...more },
  });

  /** A workspace in `d`, something outside of it, a link from one to the other. */
  function workspace(): Bench & { sandbox: (entries: object[]) => object } {
    const made = bench();
    const { folder } = made;
    mkdirSync(join(folder, 'd/.git'), { recursive: true });
    mkdirSync(join(folder, 'out'));
    writeFileSync(join(folder, 'd/x'), 'x');
    writeFileSync(join(folder, 'd/.git/c'), 'c');
    writeFileSync(join(folder, 'out/s'), 's');
    symlinkSync('../out', join(folder, 'd/lo'));
    const sandbox = (entries: object[]): object => ({
      permissions: {
        type: 'managed',
        file_system: { type: 'restricted', entries },
        network: 'restricted',
      },
      policyContext: { cwd: uri(join(folder, 'd')), workspaceRoots: [uri(join(folder, 'd'))] },
      windowsSandboxLevel: 'disabled',
    });
    return { ...made, sandbox };
  }

  it('[CF11] a workspace is written, the rest only read, also through links', async () => {
    const { on, sandbox } = workspace();
    const entries = [
      { path: special('root'), access: 'read' },
      { path: special('project_roots'), access: 'write' },
    ];
    const within = { sandbox: sandbox(entries), dataBase64: base64('w') };
    for (const name of ['d/x', 'out/s', 'd/lo/s'])
      expect(await on('fs/readFile', name, within)).toHaveProperty('dataBase64');
    expect(await on('fs/writeFile', 'd/n', within)).toEqual({});
    for (const name of ['out/n', 'd/lo/n', 'd/.git/c', 'd/.codex'])
      expect(await on('fs/writeFile', name, within)).toEqual(readOnly);
    expect(await on('fs/remove', 'd/n', within)).toEqual({});
    for (const name of ['d', 'out', 'd/.git'])
      expect(await on('fs/remove', name, within)).toEqual(readOnly);
    expect(await on('fs/open', 'out/n', { ...within, handleId: 'h', mode: 'replace' })).toEqual(
      readOnly,
    );
  });

  it('[CF11] what nothing allows is not there; what is denied says so', async () => {
    const { on, sandbox } = workspace();
    const isIncluded = { sandbox: sandbox([{ path: special('project_roots'), access: 'read' }]) };
    expect(await on('fs/readFile', 'd/x', isIncluded)).toHaveProperty('dataBase64');
    expect(await on('fs/writeFile', 'd/x', { ...isIncluded, dataBase64: '' })).toEqual(readOnly);
    for (const method of ['fs/readFile', 'fs/getMetadata', 'fs/canonicalize']) {
      expect(await on(method, 'out/s', isIncluded)).toEqual(missing);
      expect(await on(method, 'd/lo/s', isIncluded)).toEqual(missing);
    }
    for (const access of ['deny', 'none']) {
      const closed = {
        sandbox: sandbox([
          { path: special('root'), access: 'read' },
          { path: special('project_roots'), access },
        ]),
      };
      expect(await on('fs/readFile', 'd/x', closed)).toEqual(denied);
      // A link in a closed folder is no way out of it, and is not revealed.
      expect(await on('fs/readFile', 'd/lo/s', closed)).toEqual(denied);
      expect(await on('fs/canonicalize', 'd/lo/s', closed)).toEqual(denied);
      expect(await on('fs/readFile', 'out/s', closed)).toHaveProperty('dataBase64');
      expect(await on('fs/remove', 'out/none', closed)).toEqual({});
      expect(await on('fs/remove', '', closed)).toEqual(readOnly);
    }
    expect(await on('fs/readFile', 'd/x', { sandbox: sandbox([]) })).toEqual(missing);
  });

  it('[CF11] a sandbox that is off restricts nothing; one that cannot be kept refuses', async () => {
    const { on, sandbox, folder } = workspace();
    const off = [
      { permissions: { type: 'disabled' }, windowsSandboxLevel: 'disabled' },
      { permissions: { type: 'external', network: 'enabled' }, windowsSandboxLevel: 'disabled' },
      {
        permissions: { type: 'managed', file_system: { type: 'unrestricted' }, network: 'enabled' },
        windowsSandboxLevel: 'disabled',
      },
    ];
    for (const each of off)
      expect(await on('fs/writeFile', 'out/s', { sandbox: each, dataBase64: '' })).toEqual({});
    const pattern = { type: 'glob_pattern', pattern: `${folder}/*` };
    expect(
      await on('fs/readFile', 'd/x', { sandbox: sandbox([{ path: pattern, access: 'deny' }]) }),
    ).toEqual({ code: -32602, message: 'sandbox intent cannot be enforced on this executor' });
    const wrong: [unknown, string][] = [
      [{}, 'missing field `permissions`'],
      [{ permissions: { type: 'disabled' } }, 'missing field `windowsSandboxLevel`'],
      [
        { permissions: { type: 'zzz' } },
        'unknown variant `zzz`, expected one of `managed`, `disabled`, `external`',
      ],
      [5, 'invalid type: number, expected struct WireFileSystemSandboxContext'],
    ];
    for (const [each, message] of wrong)
      expect(await on('fs/readFile', 'd/x', { sandbox: each })).toEqual({ code: -32602, message });
  });
});

/** How many of our descriptors lead to a file. */
function descriptorsOf(path: string): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === path;
    } catch {
      return false;
    }
  }).length;
}

function watchersOf(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'FSEvent').length;
}

/** Gives the event loop turns until it is so; the test's time limit ends it otherwise. */
async function settled(holds: () => boolean): Promise<void> {
  while (!holds())
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
}

function makePipe(path: string): void {
  execFileSync('sh', ['-c', 'mkfifo "$0"', path]);
}
