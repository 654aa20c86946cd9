// The ceilings of a token at every door: whichever client starts a process, or touches a file, it gets no more than the token allows.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Sandbox } from 'e2b';
import { describe, expect, it } from 'vitest';
import { connect } from '../../src/client/connect.ts';
import type { TokenPolicy } from '../../src/server/http/tokens.ts';
import { CodexClient } from '../support/codex-client.ts';
import { runHere } from '../support/command-line.ts';
import { clientOptions, problem, serveE2b } from '../support/e2b-client.ts';
import { inProcess, onCleanup, OWNER, temporaryFolder } from '../support/hosts.ts';
import { overHttp } from '../support/mcp-clients.ts';
import { NativeClient } from '../support/native-client.ts';

const means = await (await inProcess()).enforcement(OWNER, {});
const hides = means.hidden.by === 'bubblewrap';
const CHAT = '5f0f2f3c-3f4b-4d0e-9a55-2f6f3b1c7a11';
const ALICE = `chat:${CHAT}`;

/** A server with every door, and a token of alice. */
async function serveAlice(policy?: TokenPolicy) {
  const served = await serveE2b();
  onCleanup(() => served.stop());
  const { token } = served.tokens.create(ALICE, undefined, undefined, policy);
  const { url } = served.server;
  const bearer = { authorization: `Bearer ${token}` };
  const native = NativeClient.of(served).with(bearer);
  const codex = (): Promise<CodexClient> =>
    CodexClient.ready(`ws://127.0.0.1:${served.port}/codex?token=${token}`);
  const e2b = (): Promise<Sandbox> => Sandbox.create(clientOptions(url, token));
  return { served, url, token, bearer, native, codex, e2b };
}

const command = 'ulimit -n';

/** Starts one process through each door. */
async function startThroughEach(alice: Awaited<ReturnType<typeof serveAlice>>): Promise<void> {
  const { served, url, token, bearer, native, codex, e2b } = alice;
  for (const [path, spec] of [
    ['/v1/processes', { command }],
    ['/v1/terminals', { argv: ['sh', '-c', command] }],
  ] as const)
    expect((await native.post(path, spec)).status).toBe(200);
  const holdfast = await connect({ url, token });
  await holdfast.run(command);
  await holdfast.close();
  const { code } = await runHere(['run', '--owner', ALICE, command], {
    env: { HOLDFAST_HOME: served.home },
  });
  expect(code).toBe(0);
  await (await codex()).shell('of-codex', command);
  const { client } = await overHttp(url, bearer);
  await client.callTool({ name: 'execute', arguments: { command } });
  await served.client.with({ ...bearer, 'coder-chat-id': CHAT }).start(command);
  await (await e2b()).commands.run(command);
}
const DOORS = 8;

describe('a process of a scoped token', () => {
  it('[CT27] has its ceilings and is hidden, whichever door it came through', async (test) => {
    test.skip(!hides, means.hidden.why);
    const alice = await serveAlice({ level: 'hidden', limits: { openFiles: 100 } });
    await startThroughEach(alice);
    const { host } = alice.served.server;
    const { processes } = await host.list('*', {});
    expect(processes.length).toBeGreaterThanOrEqual(DOORS);
    for (const { id, owner, command: line, confinement } of processes) {
      expect([line, confinement]).toEqual([
        line,
        { openFiles: { limit: 100, by: 'rlimit' }, hidden: { by: 'bubblewrap' } },
      ]);
      await host.wait('*', { waits: [{ id, for: [{ kind: 'closed' }] }] });
      const { text } = await host.text('*', { id });
      expect([line, owner, text.trim()]).toEqual([line, expect.stringMatching(/^chat:/), '100']);
    }
  });
});

describe('files through a door', () => {
  const uri = (path: string): string => pathToFileURL(path).href;
  const data = Buffer.from('new').toString('base64');

  /** A file inside the folders of a token, and one outside. */
  function places(): { folder: string; inside: string; outside: string } {
    const around = temporaryFolder();
    const folder = join(around, 'inside');
    mkdirSync(folder);
    const [inside, outside] = [join(folder, 'file'), join(around, 'file')];
    for (const file of [inside, outside]) writeFileSync(file, 'old');
    return { folder, inside, outside };
  }

  it('[CT28] a token that may write in some folders writes in no other through codex and E2B', async () => {
    const { folder, inside, outside } = places();
    const { codex, e2b } = await serveAlice({
      level: 'none',
      sandbox: { fs: { write: [folder] } },
    });
    const client = await codex();
    await client.call('fs/writeFile', { path: uri(inside), dataBase64: data });
    expect(
      await client.refusal('fs/writeFile', { path: uri(outside), dataBase64: data }),
    ).toMatchObject({ message: expect.stringContaining('Read-only') });
    expect(await client.refusal('fs/remove', { path: uri(outside) })).toBeDefined();
    const { files } = await e2b();
    await files.write(inside, 'e2b');
    expect((await problem(files.write(outside, 'e2b'))).message).toContain('EROFS');
    await problem(files.remove(outside));
    expect([inside, outside].map((file) => readFileSync(file, 'utf8'))).toEqual(['e2b', 'old']);
  });

  it.skipIf(process.getuid?.() !== 0)(
    '[CT28] a token whose processes are another user touches no file with the rights of the server',
    async () => {
      const { inside } = places();
      const { codex, e2b } = await serveAlice({ level: 'hidden', sandbox: { user: 'nobody' } });
      const client = await codex();
      for (const [method, more] of [
        ['fs/readFile', {}],
        ['fs/writeFile', { dataBase64: data }],
      ] as const)
        expect(await client.refusal(method, { path: uri(inside), ...more })).toMatchObject({
          message: expect.stringContaining('Permission denied'),
        });
      const { files } = await e2b();
      expect((await problem(files.read(inside))).message).toContain('EACCES');
      expect(readFileSync(inside, 'utf8')).toBe('old');
    },
  );

  it('[CT28] a scoped token changes no setting or cgroup of the machine, and reads no disk', async () => {
    const { codex } = await serveAlice();
    const client = await codex();
    for (const path of ['/proc/sys/kernel/core_pattern', '/sys/kernel/uevent_helper'])
      expect(
        await client.refusal('fs/writeFile', { path: uri(path), dataBase64: data }),
      ).toBeDefined();
    for (const path of ['/dev/vda', '/dev/loop0', '/dev/mem'])
      expect(await client.refusal('fs/readFile', { path: uri(path) })).toMatchObject({
        message: expect.stringContaining('Permission denied'),
      });
  });

  it('[CT28] a token without a network makes no requests through codex', async () => {
    const { codex, url } = await serveAlice({ level: 'none', sandbox: { net: 'none' } });
    const client = await codex();
    const refusal = await client.refusal('http/request', {
      method: 'GET',
      url: `${url}/health`,
      requestId: '1',
    });
    expect(refusal.message).toContain('allows no network');
  });
});
