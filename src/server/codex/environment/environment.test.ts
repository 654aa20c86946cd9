import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { caller, TestSession, type Answer } from '../../../../test/support/codex-session.ts';
import { temporaryFolder } from '../../../../test/support/hosts.ts';
import { capabilityMethods } from './capability-roots.ts';
import { installedMethods } from './installed-capabilities.ts';
import { environmentInfo, environmentMethods } from './environment.ts';
import { fsMethods } from '../fs/fs.ts';

const uri = (path: string): string => pathToFileURL(path).href;

function surroundings(folder: string, env: Record<string, string> = {}) {
  return { env, cwd: folder, userHome: folder, version: '1.2.3' };
}

function asker(folder: string, session = new TestSession(), env: Record<string, string> = {}) {
  const about = surroundings(folder, env);
  return caller(
    environmentMethods(about, () => environmentInfo(about)),
    session,
  );
}

describe('the environment', () => {
  it('[CF15] says where commands run: shell, folders, platform (7, 8)', async () => {
    const folder = temporaryFolder();
    const ask = asker(folder, undefined, { SHELL: '/bin/sh', TMPDIR: folder });
    const info = {
      shell: { name: 'sh', path: '/bin/sh' },
      executorVersion: '1.2.3',
      cwd: uri(folder),
      userHomeDir: uri(folder),
      platformOs: 'linux',
      temporaryDirectories: [],
      tempDir: uri(folder),
    };
    for (const params of [undefined, null, {}])
      expect(await ask('environment/info', params)).toMatchObject(info);
    expect(await ask('environment/status', {})).toEqual({ status: 'ready' });
    for (const [params, kind] of [
      [[], 'sequence'],
      [{ x: 1 }, 'map'],
      [5, 'number'],
    ] as const)
      expect(await ask('environment/status', params)).toEqual({
        code: -32602,
        message: `invalid type: ${kind}, expected unit`,
      });
  });

  it('[CF15] a shell that is not there is not offered', () => {
    const { shell } = environmentInfo(surroundings('/', { SHELL: '/nonexistent/fish' }));
    expect(['/bin/bash', '/usr/bin/bash', '/bin/sh']).toContain(shell.path);
  });

  it('[CF15] every capability stands for methods that are there', () => {
    const about = surroundings('/');
    const { capabilities } = environmentInfo(about);
    const methods = {
      ...fsMethods(about),
      ...capabilityMethods(about),
      ...installedMethods(about),
      ...environmentMethods(about, () => environmentInfo(about)),
    };
    expect(capabilities).toEqual({
      capabilityDiscoverySandbox: true,
      capabilityDiscoveryV2: true,
      fsWatchMissing: true,
      environmentConfigRead: true,
      httpHeaderEnvVars: true,
      sandboxedFileStreaming: true,
      fileWriteStreaming: true,
      shellSnapshotV2: true,
    });
    for (const name of [
      'capabilityRoots/discoverV1',
      'capabilities/discoverV2',
      'fs/watchMissing',
      'environmentConfig/read',
      'fs/open',
      'fs/writeBlock',
    ])
      expect(methods[name]).toBeTypeOf('function');
  });
});

describe('the configuration', () => {
  const read = (
    ask: (method: string, params?: unknown) => Promise<Answer>,
    more: Record<string, unknown> = {},
  ): Promise<Answer> =>
    ask('environmentConfig/read', {
      cwd: 'file:///tmp',
      configPaths: [['mcp_servers']],
      requirementsPaths: [],
      ...more,
    });
  const none = { layers: [], cloudInsertionIndex: 0 };

  it("[CF16] the user's own is read in parts, and nothing that was not asked for", async () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, '.codex'));
    const file = join(folder, '.codex/config.toml');
    writeFileSync(file, 'api_key = "secret"\n[mcp_servers.a]\ncommand = "a"\n');
    const ask = asker(folder);
    expect(await read(ask)).toEqual({
      userHomeDir: uri(folder),
      codexHomeDir: uri(join(folder, '.codex')),
      hostname: hostname(),
      config: {
        layers: [
          {
            source: `user (${file})`,
            baseDir: uri(join(folder, '.codex')),
            toml: '[mcp_servers.a]\ncommand = "a"\n',
          },
        ],
        cloudInsertionIndex: 0,
      },
      requirements: none,
    });
    expect(await read(ask, { configPaths: [['nope']] })).toMatchObject({ config: none });
    const elsewhere = temporaryFolder();
    const other = asker(folder, undefined, { CODEX_HOME: elsewhere });
    expect(await read(other, { requirementsPaths: [['mcp_servers']] })).toMatchObject({
      codexHomeDir: uri(elsewhere),
      config: none,
      requirements: none,
    });
  });

  it('[CF16] what is asked wrongly or written wrongly is refused', async () => {
    const folder = temporaryFolder();
    const ask = asker(folder, undefined, { CODEX_HOME: folder });
    const refusals: [Record<string, unknown>, string][] = [
      [{ configPaths: [] }, 'at least one config or requirements path is required'],
      [{ configPaths: [[]] }, 'TOML paths must contain at least one key segment'],
      [{ cwd: 'x' }, 'invalid URI: relative URL without a base'],
      [{ cwd: undefined }, 'missing field `cwd`'],
      [{ configPaths: undefined }, 'missing field `configPaths`'],
      [{ requirementsPaths: undefined }, 'missing field `requirementsPaths`'],
    ];
    for (const [more, message] of refusals)
      expect(await read(ask, more)).toEqual({ code: -32602, message });
    const file = join(folder, 'config.toml');
    writeFileSync(file, 'bad = = \n');
    expect(await read(ask)).toEqual({
      code: -32603,
      message: `failed to load executor-local config: ${file}:1:7: invalid value`,
    });
  });

  it('[CF10] a scoped token does not read the state directory by way of a configuration', async () => {
    const folder = temporaryFolder();
    const home = join(folder, 'state');
    mkdirSync(home);
    writeFileSync(join(home, 'token'), 'mcp_servers = "secret"');
    symlinkSync(join(home, 'token'), join(folder, 'config.toml'));
    const env = { CODEX_HOME: folder };
    const refused = await read(asker(folder, new TestSession(home), env));
    expect(refused).toMatchObject({ code: -32603 });
    expect(JSON.stringify(refused)).not.toContain('secret');
    expect(JSON.stringify(await read(asker(folder, undefined, env)))).toContain('secret');
  });
});
