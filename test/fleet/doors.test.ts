// What touches a host's machine, through a gateway: codex, terminals with their screens, and the tools of MCP.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, type Holdfast } from '../../src/index.ts';
import { CodexClient } from '../support/codex-client.ts';
import { recording, replayed } from '../support/codex-replay.ts';
import { serveByGateway, type GatewayServer } from '../support/gateway-server.ts';
import { onCleanup, temporaryFolder } from '../support/hosts.ts';
import { overHttp } from '../support/mcp-clients.ts';
import { hasNats, LEFT_OUT } from '../support/nats.ts';
import { Tokens } from '../../src/server/http/tokens.ts';
import { systemClock } from '../../src/base/clock.ts';

interface Fleet extends GatewayServer {
  readonly home: string;
  readonly token: string;
  codex(token?: string, query?: string): string;
}

async function fleet(owners?: readonly string[]): Promise<Fleet> {
  const home = mkdtempSync(join(tmpdir(), 'holdfast-doors-'));
  const made = await serveByGateway(
    {
      home,
      env: process.env,
      keeperArgs: ['--idle-ms', '60000'],
      tokenFile: join(home, 'token'),
    },
    owners,
  );
  const token = readFileSync(join(home, 'token'), 'utf8').trim();
  const at = made.server.url.replace('http', 'ws');
  return {
    ...made,
    home,
    token,
    codex: (given = token, query = '') => `${at}/codex?token=${given}${query}`,
    stop: async () => {
      await made.stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

describe.skipIf(!hasNats)(`the doors of a gateway${LEFT_OUT}`, () => {
  let shared: Fleet;
  let client: Holdfast;
  beforeAll(async () => {
    shared = await fleet();
    client = await connect({ url: shared.server.url, token: shared.token });
  });
  afterAll(async () => {
    await client.close();
    await shared.stop();
  });

  it('[FL72] codex works at a host: its recorded conversation, its files, its output whole', async () => {
    const root = temporaryFolder();
    mkdirSync(join(root, 'ws/a b'), { recursive: true });
    const open = (): Promise<CodexClient> => CodexClient.connect(shared.codex());
    const entries = recording('codex-02-start-output-exit.jsonl', { '/sandbox': root });
    expect(await replayed(entries, { root, open })).toEqual({});
    const codex = await CodexClient.ready(shared.codex());
    const file = join(root, 'file');
    writeFileSync(file, 'at the host');
    const read = await codex.call('fs/readFile', { path: `file://${file}` });
    expect(read).toMatchObject({ dataBase64: Buffer.from('at the host').toString('base64') });
    await codex.shell('big', 'seq 1 1000000');
    await codex.untilClosed('big');
    const numbers = codex.output('big').split('\n');
    expect([numbers.length, numbers[999_999]]).toEqual([1_000_001, '1000000']);
  });

  it('[FL36] metrics count the hosts by their state', async () => {
    const headers = { Authorization: `Bearer ${shared.token}` };
    const text = await (await fetch(`${shared.server.url}/metrics`, { headers })).text();
    expect(text).toContain('holdfast_fleet_hosts{state="here"} 1\n');
    expect(text).toContain('holdfast_fleet_hosts{state="silent"} 0\n');
    expect(text).toContain('holdfast_fleet_hosts_draining 0\n');
    expect(text).toMatch(/^holdfast_processes_live \d/m);
  });

  it('[FL73] a session is resumed at its host when the tunnel has been cut', async () => {
    const codex = await CodexClient.ready(shared.codex());
    await codex.shell('p', 'echo one; read x; echo got $x', { pipeStdin: true });
    await codex.untilOutput('p', 'one');
    const dropped = codex.dropped();
    await shared.rejoin();
    await dropped;
    const again = await CodexClient.ready(shared.codex(), { resume: codex.session });
    expect(again.session).toBe(codex.session);
    await again.write('p', 'two\n', 'w1');
    await again.untilOutput('p', 'got two');
    const unknown = await CodexClient.connect(shared.codex());
    const problem = await unknown.refusal('initialize', {
      clientName: 'test',
      resumeSessionId: 'never-was',
    });
    expect(problem.message).toBe('unknown session id never-was');
  });

  it('[FL74] no tunnel has an administrator at its end, and a host refuses owners that it does not admit', async () => {
    const codex = await CodexClient.ready(shared.codex());
    const secret = `file://${join(`${shared.home}-host`, 'tokens')}`;
    const refused = await codex.refusal('fs/readDirectory', { path: secret });
    expect(refused.code).toBe(-32600);
    await codex.shell('mine', 'sleep 600');
    const all = await client.list();
    expect(all.map(({ owner }) => owner)).toContain(`fleet/codex:${codex.session}`);
    const other = await fleet(['acme:*']);
    onCleanup(() => other.stop());
    const closed = async (url: string): Promise<[number, string]> => {
      const { socket, send } = await CodexClient.connect(url).then((made) => ({
        socket: made.socket,
        send: () => made.notify('initialize', { clientName: 'x' }),
      }));
      const end = new Promise<[number, string]>((resolve) => {
        socket.once('close', (code: number, reason: Buffer) => resolve([code, reason.toString()]));
      });
      send();
      return end;
    };
    expect(await closed(other.codex())).toEqual([
      1011,
      `The host "${other.name}" does not work for the owner "fleet".`,
    ]);
    const { token } = new Tokens(other.home, systemClock).create('acme:1');
    await (await CodexClient.ready(other.codex(token))).shell('p', 'true');
    await expect(CodexClient.connect(other.codex(token, '&host.name=none'))).rejects.toThrow('503');
  });

  it('[FL75] terminals are typed to, searched, shown as a picture, and answer what programs ask', async () => {
    const terminal = await client.terminal({
      argv: ['/bin/bash'],
      env: { PS1: '$ ', HOME: '/' },
    });
    const ask = `stty raw -echo; printf '\\033[6n'; dd bs=1 count=6 2>/dev/null | od -An -c; stty sane`;
    expect(await terminal.run(ask)).toMatchObject({
      output: expect.stringContaining('R') as string,
    });
    await terminal.run('echo needle');
    const picture = await terminal.screenshot();
    expect(picture.subarray(1, 4).toString()).toBe('PNG');
    const { hits } = await client.api.search({ id: terminal.id, pattern: 'needle' });
    expect(hits).toHaveLength(2);
    await terminal.close();
  });

  it('[FL76] the tools of MCP act at the hosts', async () => {
    const mcp = await overHttp(shared.server.url, { authorization: `Bearer ${shared.token}` });
    const answer = await mcp.client.callTool({
      name: 'execute',
      arguments: { command: 'echo $((6*7)); exit 3' },
    });
    expect(answer.structuredContent).toMatchObject({ exit_code: 3, output: '42\n' });
  });
});
