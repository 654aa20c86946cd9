// Sandboxed commands through the codex door, with a real bubblewrap.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { findBubblewrap } from '../../src/server/codex/sandbox/sandbox.ts';
import { CodexClient, ENV, serveCodex } from '../support/codex-client.ts';
import { onCleanup, temporaryFolder } from '../support/hosts.ts';

const isWorking = (await findBubblewrap(process.env['BUBBLEWRAP'])()) !== undefined;
const cannot = { code: -32602, message: 'sandbox intent cannot be enforced on this executor' };

/** The disk to read, one folder to write. */
function sandbox(folder: string, network: 'restricted' | 'enabled' = 'restricted'): object {
  const special = (kind: string): object => ({ type: 'special', value: { kind } });
  const entries = [
    { path: special('root'), access: 'read' },
    { path: special('project_roots'), access: 'write' },
  ];
  return {
    permissions: {
      type: 'managed',
      file_system: { type: 'restricted', entries },
      network,
    },
    workspaceRoots: [pathToFileURL(folder).href],
    windowsSandboxLevel: 'disabled',
  };
}

async function connected(): Promise<{ client: CodexClient & { session: string }; url: string }> {
  const { served, url } = await serveCodex();
  onCleanup(() => served.stop());
  return { client: await CodexClient.ready(url), url };
}

describe.skipIf(!isWorking)('a sandboxed command', () => {
  it('[CX907] that failed because of its sandbox is reported so, by notification and by read, also to later clients', async () => {
    // 37
    const { client, url } = await connected();
    const folder = temporaryFolder();
    const boxed = { sandbox: sandbox(folder) };
    const scripts = {
      disk: 'touch /etc/holdfast-no',
      quiet: 'exit 3',
      fine: 'echo Permission denied >&2; echo in > "$PWD/a"',
      local: 'bash -c "echo > /dev/tcp/127.0.0.1/9"',
      net: 'echo "curl: (6) Could not resolve host: example.org"; exit 6',
    };
    const expected = { disk: true, quiet: false, fine: false, local: true, net: true };
    for (const [id, script] of Object.entries(scripts)) {
      const started = await client.shell(id, script, { ...boxed, cwd: pathToFileURL(folder).href });
      expect(started).toEqual({ processId: id, sandboxType: 'linuxSeccomp' });
    }
    for (const [id, sandboxDenied] of Object.entries(expected)) {
      await client.untilClosed(id);
      const exited = client.of(id).find(({ method }) => method === 'process/exited');
      expect([id, exited?.params.sandboxDenied]).toEqual([id, sandboxDenied]);
      expect([id, await client.read(id)]).toMatchObject([id, { sandboxDenied }]);
    }
    expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('in\n');
    // Where the network is allowed, its failures are its own.
    await client.shell('open', scripts.net, { sandbox: sandbox(folder, 'enabled') });
    await client.untilClosed('open');
    expect(await client.read('open')).toMatchObject({ exitCode: 6, sandboxDenied: false });
    await client.shell('later', 'read go; touch /etc/holdfast-no', { ...boxed, pipeStdin: true });
    await client.kill();
    const next = await CodexClient.ready(url, { resume: client.session });
    await next.write('later', 'go\n', 'w');
    await next.untilClosed('later');
    const reported = next.of('later').find(({ method }) => method === 'process/exited');
    expect(reported?.params.sandboxDenied).toBe(true);
  });

  it('[CX908] whose network was to be managed is refused', async () => {
    const { client } = await connected();
    const start = { argv: ['true'], cwd: 'file:///', env: ENV, tty: false };
    const managed = { sandbox: sandbox(temporaryFolder()), enforceManagedNetwork: true };
    expect(await client.refusal('process/start', { processId: 'm', ...start, ...managed })).toEqual(
      cannot,
    );
  });
});

it('[CX907] a command without a sandbox is never denied by one', async () => {
  const { client } = await connected();
  await client.shell('p', 'echo Permission denied; exit 1');
  await client.untilClosed('p');
  const exited = client.of('p').find(({ method }) => method === 'process/exited');
  expect(exited?.params.sandboxDenied).toBe(false);
  expect(await client.read('p')).toMatchObject({ exitCode: 1, sandboxDenied: false });
});

it('[CX908] a start with a proxy is refused; without a sandbox there is no network to manage', async () => {
  const { client } = await connected();
  const start = { argv: ['true'], cwd: 'file:///', env: ENV, tty: false };
  const proxied = { processId: 'n', ...start, networkProxy: { proxy: { enabled: true } } };
  expect(await client.refusal('process/start', proxied)).toEqual(cannot);
  const open = { processId: 'o', ...start, enforceManagedNetwork: true, managedNetwork: {} };
  expect(await client.call('process/start', open)).toEqual({ processId: 'o', sandboxType: 'none' });
});
