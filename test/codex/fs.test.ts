import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serve, type Served } from '../support/coder-client.ts';
import { CodexClient } from '../support/codex-client.ts';
import { temporaryFolder } from '../support/hosts.ts';

let served: Served;

let around: string;

beforeAll(async () => {
  // In a folder of its own: what a test tries to remove around the home must be ours if it ever succeeds.
  around = mkdtempSync(join(tmpdir(), 'holdfast-wire-'));
  served = await serve({ home: join(around, 'state') });
});

afterAll(async () => {
  await served.stop();
  rmSync(around, { recursive: true, force: true });
});

const uri = (path: string): string => pathToFileURL(path).href;
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const connect = (token = served.token): Promise<CodexClient> =>
  CodexClient.ready(`ws://127.0.0.1:${served.port}/codex?token=${token}`);

describe('files through the codex door', () => {
  it('[CF2] the recorded conversation about files has the same answers', async () => {
    const client = await connect();
    const folder = temporaryFolder();
    const at = (name: string): string => uri(join(folder, name));
    const turn = async (
      method: string,
      params: Record<string, unknown>,
      answer: Record<string, unknown>,
    ): Promise<void> => {
      const got = await client.ask(method, { sandbox: null, ...params });
      expect('error' in got ? got.error : got.result).toEqual(answer);
    };
    const missing = { code: -32004, message: 'No such file or directory (os error 2)' };
    await turn('fs/createDirectory', { path: at('fs'), recursive: true }, {});
    await turn('fs/createDirectory', { path: at('fs/a/b/c') }, {});
    await turn('fs/createDirectory', { path: at('fs/x/y'), recursive: false }, missing);
    await turn(
      'fs/createDirectory',
      { path: at('fs/a'), recursive: false },
      { code: -32603, message: 'File exists (os error 17)' },
    );
    await turn('fs/writeFile', { path: at('fs/f.txt'), dataBase64: base64('hello') }, {});
    await turn('fs/writeFile', { path: at('fs/nodir/f.txt'), dataBase64: '' }, missing);
    await turn('fs/readFile', { path: at('fs/f.txt') }, { dataBase64: base64('hello') });
    await turn(
      'fs/readFile',
      { path: at('fs/a') },
      { code: -32600, message: `path \`${folder}/fs/a\` is not a file` },
    );
    symlinkSync('f.txt', join(folder, 'fs/link'));
    await turn('fs/canonicalize', { path: at('fs/a/../link') }, { path: at('fs/f.txt') });
    await turn(
      'fs/readFile',
      { path: at('fs/link'), followSymlinks: false },
      { code: -32603, message: 'Symbolic link loop (os error 40)' },
    );
    await turn('fs/open', { handleId: 'h1', path: at('fs/f.txt') }, { handleId: 'h1' });
    await turn(
      'fs/readBlock',
      { handleId: 'h1', offset: 1, len: 3 },
      { chunk: 'ZWxs', eof: false },
    );
    await turn('fs/close', { handleId: 'h1' }, {});
    await turn('fs/remove', { path: at('fs/missing') }, {});
    await turn('fs/remove', { path: at('fs') }, {});
    await turn(
      'fs/nope',
      {},
      { code: -32601, message: 'exec-server stub does not implement `fs/nope` yet' },
    );
    expect(readdirSync(folder)).toEqual([]);
  });

  it('[CF2] a file larger than one frame of the client arrives and is written back', async () => {
    const client = await connect();
    const folder = temporaryFolder();
    const bytes = Buffer.alloc(20 * 1024 * 1024, 'holdfast');
    writeFileSync(join(folder, 'big'), bytes);
    const { dataBase64 } = (await client.call('fs/readFile', {
      path: uri(join(folder, 'big')),
    })) as { dataBase64: string };
    await client.call('fs/writeFile', { path: uri(join(folder, 'copy')), dataBase64 });
    expect(readFileSync(join(folder, 'copy')).equals(bytes)).toBe(true);
  });

  it('[CF8] a connection that ends closes its files; a resumed one begins without', async () => {
    const client = await CodexClient.ready(
      `ws://127.0.0.1:${served.port}/codex?token=${served.token}`,
    );
    const folder = temporaryFolder();
    const file = join(folder, 'f');
    writeFileSync(file, 'x');
    await client.call('fs/open', { handleId: 'h', path: uri(file) });
    // The server of this test is in this process.
    expect(descriptorsOf(file)).toBe(1);
    await client.kill();
    while (descriptorsOf(file) > 0)
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    const again = await CodexClient.ready(
      `ws://127.0.0.1:${served.port}/codex?token=${served.token}`,
      { resume: client.session },
    );
    expect(await again.refusal('fs/readBlock', { handleId: 'h', offset: 0, len: 1 })).toEqual({
      code: -32004,
      message: 'unknown file handle `h`',
    });
  });

  it('[CF9] a watch notifies over the wire', async () => {
    const client = await connect();
    const folder = temporaryFolder();
    const watch = { watchId: 4, missing: [uri(join(folder, '.git'))], present: null };
    expect(await client.call('fs/watchMissing', watch)).toEqual({ watching: true });
    mkdirSync(join(folder, '.git'));
    await client.until(() =>
      client.notifications.some(({ method }) => method === 'fs/missingChanged'),
    );
    expect(JSON.parse(client.raw.at(-1) ?? '')).toEqual({
      method: 'fs/missingChanged',
      params: { watchId: 4 },
    });
  });

  it("[CF10] a scoped token reads its files and nothing of the server's home", async () => {
    const client = await connect(served.tokens.create('chat:files').token);
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'mine'), 'mine');
    symlinkSync(served.home, join(folder, 'alias'));
    const denied = { code: -32600, message: 'Permission denied (os error 13)' };
    expect(await client.call('fs/readFile', { path: uri(join(folder, 'mine')) })).toEqual({
      dataBase64: base64('mine'),
    });
    for (const path of [join(served.home, 'token'), join(folder, 'alias/token')]) {
      expect(await client.refusal('fs/readFile', { path: uri(path) })).toEqual(denied);
      expect(await client.refusal('fs/writeFile', { path: uri(path), dataBase64: '' })).toEqual(
        denied,
      );
      expect(await client.refusal('fs/remove', { path: uri(path) })).toEqual(denied);
    }
    expect(await client.refusal('fs/remove', { path: uri(served.home) })).toEqual(denied);
    expect(await client.refusal('fs/remove', { path: uri(around) })).toEqual(denied);
    expect(existsSync(join(served.home, 'token'))).toBe(true);
    // The link itself is the caller's own.
    expect(await client.call('fs/remove', { path: uri(join(folder, 'alias')) })).toEqual({});
    expect(readdirSync(served.home)).toContain('token');
    rmSync(join(folder, 'mine'));
  });

  it('[CF15] what initialize tells is what environment/info tells, and every method it promises answers (8)', async () => {
    const client = await CodexClient.connect(
      `ws://127.0.0.1:${served.port}/codex?token=${served.token}`,
    );
    const { environmentInfo } = (await client.call('initialize', { clientName: 'test' })) as {
      environmentInfo: { capabilities: Record<string, boolean> };
    };
    client.notify('initialized', {});
    const [info, again, status] = await Promise.all([
      client.call('environment/info'),
      client.call('environment/info', {}),
      client.call('environment/status', null),
    ]);
    expect(info).toEqual(environmentInfo);
    expect(again).toEqual(environmentInfo);
    expect(status).toEqual({ status: 'ready' });
    expect(environmentInfo.capabilities).toMatchObject({
      fsWatchMissing: true,
      environmentConfigRead: true,
    });
    const config = await client.call('environmentConfig/read', {
      cwd: 'file:///tmp',
      configPaths: [['mcp_servers']],
      requirementsPaths: [['mcp_servers']],
    });
    expect(config).toMatchObject({ requirements: { cloudInsertionIndex: 0 } });
  });

  it('[CF17] a sandbox is enforced or refused, never left out', async () => {
    const client = await connect();
    const folder = temporaryFolder();
    const sandbox = {
      permissions: {
        type: 'managed',
        file_system: {
          type: 'restricted',
          entries: [{ path: { type: 'special', value: { kind: 'root' } }, access: 'read' }],
        },
        network: 'restricted',
      },
      windowsSandboxLevel: 'disabled',
    };
    const answer = await client.ask('process/start', {
      processId: 'boxed',
      argv: ['sh', '-c', `echo x > ${folder}/escaped`],
      cwd: 'file:///tmp',
      env: { PATH: '/usr/bin:/bin' },
      tty: false,
      sandbox,
    });
    if ('error' in answer)
      expect(answer.error).toEqual({
        code: -32602,
        message: 'sandbox intent cannot be enforced on this executor',
      });
    else await client.untilClosed('boxed');
    expect(existsSync(join(folder, 'escaped'))).toBe(false);
    expect(served.reports).toEqual([]);
  });
});

function descriptorsOf(path: string): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === path;
    } catch {
      return false;
    }
  }).length;
}
