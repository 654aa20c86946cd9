import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { caller, TestSession, type Answer } from '../../../../test/support/codex-session.ts';
import { onCleanup, temporaryFolder } from '../../../../test/support/hosts.ts';
import { locateIn } from './alias.ts';
import { fsMethods } from './fs.ts';

const about = { env: {}, cwd: '/', userHome: '/', version: '0' };
const uri = (path: string): string => pathToFileURL(path).href;
const denied = { code: -32600, message: 'Permission denied (os error 13)' };
const dataBase64 = Buffer.from('mine').toString('base64');

interface Scoped {
  readonly folder: string;
  readonly home: string;
  readonly call: (method: string, params: unknown) => Promise<Answer>;
}

/** What a process sees as its disk. */
const rootOf = (process: string | number | undefined): string =>
  join('/proc', String(process), 'root');

/** A state directory with a secret in it, and a caller with a scoped token. */
function scoped(): Scoped {
  const folder = realpathSync(temporaryFolder());
  const home = join(folder, 'state');
  mkdirSync(join(home, 'journals'), { recursive: true });
  writeFileSync(join(home, 'token'), 'secret', { mode: 0o600 });
  writeFileSync(join(home, 'journals/1'), 'output', { mode: 0o600 });
  return { folder, home, call: caller(fsMethods(about), new TestSession(home)) };
}

/** By every method that reads or writes what the path names. */
async function expectDenied({ call, folder, home }: Scoped, path: string): Promise<void> {
  const asked = { path: path.startsWith('file:') ? path : uri(path) };
  for (const method of ['fs/readFile', 'fs/getMetadata', 'fs/canonicalize'])
    expect([path, await call(method, asked)]).toEqual([path, denied]);
  expect(await call('fs/open', { ...asked, handleId: 'h' })).toEqual(denied);
  expect(await call('fs/open', { ...asked, handleId: 'h', mode: 'replace' })).toEqual(denied);
  expect(await call('fs/writeFile', { ...asked, dataBase64 })).toEqual(denied);
  const copied = { destinationPath: uri(join(folder, 'stolen')), recursive: true };
  expect(await call('fs/copy', { sourcePath: asked.path, ...copied })).toEqual(denied);
  expect(existsSync(join(folder, 'stolen'))).toBe(false);
  expect(readFileSync(join(home, 'token'), 'utf8')).toBe('secret');
}

it('[CX906] a hard link to a file of the state directory is out of reach, another private file is not', async () => {
  const made = scoped();
  const { folder, home, call } = made;
  for (const [name, target] of [
    ['hard', 'token'],
    ['deep', 'journals/1'],
  ] as const) {
    linkSync(join(home, target), join(folder, name));
    await expectDenied(made, join(folder, name));
  }
  symlinkSync('hard', join(folder, 'soft-to-hard'));
  const soft = { path: uri(join(folder, 'soft-to-hard')) };
  expect(await call('fs/readFile', soft)).toEqual(denied);
  expect(await call('fs/writeFile', { ...soft, dataBase64 })).toEqual(denied);
  mkdirSync(join(folder, 'tree'));
  linkSync(join(home, 'token'), join(folder, 'tree/hard'));
  const copy = { destinationPath: uri(join(folder, 'all')), recursive: true };
  expect(await call('fs/copy', { sourcePath: uri(join(folder, 'tree')), ...copy })).toEqual(denied);
  expect(existsSync(join(folder, 'all/hard'))).toBe(false);
  writeFileSync(join(folder, 'own'), 'mine', { mode: 0o600 });
  linkSync(join(folder, 'own'), join(folder, 'own-too'));
  const own = await call('fs/readFile', { path: uri(join(folder, 'own-too')) });
  expect(own).toEqual({ dataBase64 });
  // The name is the caller's to remove; the file keeps its other one.
  expect(await call('fs/remove', { path: uri(join(folder, 'hard')) })).toEqual({});
  expect(readFileSync(join(home, 'token'), 'utf8')).toBe('secret');
});

it('[CX906] dots and escapes lead nowhere else', async () => {
  const made = scoped();
  const { folder } = made;
  mkdirSync(join(folder, 'a/b'), { recursive: true });
  for (const options of [
    'a/../state/token',
    'a/%2e%2e/state/token',
    'a/b/%2E%2E/..%2Fstate%2Ftoken',
    './/state//./token',
    'a/..%2fstate/token',
    'st%61te/token',
  ])
    await expectDenied(made, `${uri(folder)}/${options}`);
  expect(readdirSync(folder).sort()).toEqual(['a', 'state']);
});

it('[CX906] nothing of it by way of /proc: not by descriptors, folders or roots of this or another process', async () => {
  const made = scoped();
  const { folder, home, call } = made;
  const fd = openSync(join(home, 'token'), 'r');
  onCleanup(() => closeSync(fd));
  const child = spawn('sleep', ['600'], { cwd: home });
  onCleanup(() => void child.kill('SIGKILL'));
  await once(child, 'spawn');
  const ways = [
    `/proc/self/fd/${fd}`,
    `/proc/thread-self/fd/${fd}`,
    `/dev/fd/${fd}`,
    `/proc/${process.pid}/fd/${fd}`,
    `/proc/self/root${home}/token`,
    `${rootOf(`self/task/${process.pid}`)}${home}/token`,
    `/proc/${child.pid}/cwd/token`,
    `${rootOf(child.pid)}${home}/token`,
    '/proc/self/environ',
  ];
  expect(await call('fs/readFile', { path: uri('/proc/kcore') })).toEqual(denied);
  for (const options of ways) {
    expect([options, await call('fs/readFile', { path: uri(options) })]).toEqual([options, denied]);
    const link = join(folder, `way-${ways.indexOf(options)}`);
    symlinkSync(options, link);
    expect([options, await call('fs/readFile', { path: uri(link) })]).toEqual([options, denied]);
  }
  symlinkSync(`/proc/${child.pid}/cwd`, join(folder, 'cwd'));
  await expectDenied(made, join(folder, 'cwd/token'));
  // Where this program itself is.
  const here = realpathSync(process.cwd());
  const inside = caller(fsMethods(about), new TestSession(here));
  const path = uri('/proc/self/cwd/package.json');
  expect(await inside('fs/readFile', { path })).toEqual(denied);
  expect(await call('fs/readFile', { path })).toHaveProperty('dataBase64');
});

it('[CX906] a mount is known by what it shows', () => {
  const mounts = [
    '22 1 8:1 / / rw - ext4 /dev/sda1 rw',
    '30 22 8:1 /home/u/.holdfast /mnt/my\\040alias rw - ext4 /dev/sda1 rw',
    '31 22 0:5 / /other/proc rw - proc proc rw',
    '32 22 8:2 /home /srv rw shared:1 - ext4 /dev/sdb1 rw',
  ].join('\n');
  const at = (id: string, real: string): unknown => locateIn(mounts, id, real);
  const spot = (device: string, path: string, isProc = false): object => ({ device, path, isProc });
  expect(at('22', '/home/u/.holdfast/token')).toEqual(spot('8:1', '/home/u/.holdfast/token'));
  expect(at('30', '/mnt/my alias/token')).toEqual(spot('8:1', '/home/u/.holdfast/token'));
  expect(at('30', '/mnt/my alias')).toEqual(spot('8:1', '/home/u/.holdfast'));
  expect(at('31', '/other/proc/1/environ')).toEqual(spot('0:5', '/1/environ', true));
  expect(at('32', '/srv/u')).toEqual(spot('8:2', '/home/u'));
  expect(at('99', '/anything')).toBeUndefined();
  expect(at('30', '/elsewhere')).toBeUndefined();
});

/** Mounts of one's own need a kernel that lets one have them. */
function canMount(): boolean {
  try {
    execFileSync('unshare', ['-rm', 'mount', '-t', 'tmpfs', 'x', '/mnt'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

const mountable = canMount();

it.skipIf(!mountable)('[CX906] what another process sees as its disk is no way in', async () => {
  const made = scoped();
  const { folder, home } = made;
  mkdirSync(join(folder, 'alias'));
  const script = 'mount --bind "$1" "$2" && echo ready && exec sleep 600';
  const words = ['-rm', 'sh', '-c', script, 'sh', home, join(folder, 'alias')];
  const child = spawn('unshare', words, { stdio: ['ignore', 'pipe', 'inherit'] });
  onCleanup(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  symlinkSync(`${rootOf(child.pid)}${folder}/alias`, join(folder, 'theirs'));
  // The admin can see it.
  expect(readFileSync(join(folder, 'theirs/token'), 'utf8')).toBe('secret');
  await expectDenied(made, join(folder, 'theirs/token'));
});

it.skipIf(!mountable)(
  '[CX906] a bind mount of it, or of a part of it, is as closed as itself',
  () => {
    const { folder, home } = scoped();
    for (const name of ['alias', 'around/part', 'proc'])
      mkdirSync(join(folder, name), { recursive: true });
    const fs = fileURLToPath(new URL('../../../../dist/server/codex/fs/fs.js', import.meta.url));
    const program = `
    import { fsMethods } from ${JSON.stringify(fs)};
    import { pathToFileURL } from 'node:url';
    const [folder, home] = process.argv.slice(1);
    const gone = new AbortController().signal;
    const session = { admin: false, home, gone, notify() {}, backpressure() {}, onClose: () => () => {}, policy() {} };
    const table = fsMethods({ env: {}, cwd: '/', userHome: '/', version: '0' });
    const uri = (name) => pathToFileURL(folder + '/' + name).href;
    const asked = [
      ...['alias/token', 'around/part/1'].map((name) => ['fs/readFile', { path: uri(name) }]),
      ['fs/readFile', { path: uri('proc/' + process.pid + '/environ') }],
      ['fs/readDirectory', { path: uri('alias') }],
      ['fs/writeFile', { path: uri('alias/new'), dataBase64: '' }],
      ['fs/writeFile', { path: uri('alias/token'), dataBase64: '' }],
      ['fs/createDirectory', { path: uri('alias/new') }],
      ['fs/remove', { path: uri('alias/token') }],
      ['fs/remove', { path: uri('around') }],
      ['fs/copy', { sourcePath: uri('around'), destinationPath: uri('copied'), recursive: true }],
      ['fs/watchMissing', { watchId: 1, missing: [uri('alias/new')] }],
    ];
    for (const [method, params] of asked)
      console.log(await table[method](params, session).then(
        (result) => method + ' ' + JSON.stringify(result),
        (error) => method + ' ' + error.code,
      ));`;
    const script = [
      'mount --bind "$2" "$1/alias"',
      'mount --bind "$2/journals" "$1/around/part"',
      'mount --rbind /proc "$1/proc"',
      'exec "$3" --input-type=module -e "$4" "$1" "$2"',
    ].join(' && ');
    const words = ['-rm', 'sh', '-c', script, 'sh', folder, home, process.execPath, program];
    const lines = execFileSync('unshare', words, { encoding: 'utf8' }).trim().split('\n');
    expect(lines).toEqual([
      'fs/readFile -32600',
      'fs/readFile -32600',
      'fs/readFile -32600',
      'fs/readDirectory -32600',
      'fs/writeFile -32600',
      'fs/writeFile -32600',
      'fs/createDirectory -32600',
      'fs/remove -32600',
      'fs/remove -32600',
      'fs/copy -32600',
      'fs/watchMissing {"watching":false}',
    ]);
    expect(readdirSync(join(home, 'journals'))).toEqual(['1']);
    expect(readdirSync(home).sort()).toEqual(['journals', 'token']);
  },
);
