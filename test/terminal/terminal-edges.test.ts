// Terminals, sessions and bodies at their edges: ids that are used again, processes that are removed behind the server's
// back, tokens that are revoked, bodies that are too much.

import { existsSync, mkdirSync, readdirSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { HoldfastError } from '../../src/protocol/errors.ts';
import type { HostApi } from '../../src/protocol/host-api.ts';
import type { ProcessInfo } from '../../src/protocol/process.ts';
import { Screens } from '../../src/screen/view/screens.ts';
import { openSession } from '../../src/terminals/terminal-session.ts';
import { serve, type Served } from '../support/coder-client.ts';
import { inProcess, onCleanup } from '../support/hosts.ts';
import { NativeClient } from '../support/native-client.ts';

async function fresh(options: Parameters<typeof serve>[0] = {}): Promise<Served> {
  const served = await serve(options);
  onCleanup(() => served.stop());
  return served;
}

async function openPrinting(client: NativeClient, id: string, text: string): Promise<ProcessInfo> {
  const argv = ['/bin/sh', '-c', `printf ${text}; exec cat`];
  const { json } = await client.post('/v1/terminals', { id, argv });
  await client.post(`/v1/terminals/${id}/wait`, { text, timeoutMs: 30_000 });
  return (json as { process: ProcessInfo }).process;
}

async function shown(client: NativeClient, id: string): Promise<string> {
  const { json } = await client.get(`/v1/terminals/${id}/snapshot?format=text`);
  return (json as { text: string }).text;
}

/** Resolves when nothing lies in the folder. */
async function emptied(folder: string): Promise<void> {
  if (!existsSync(folder)) return;
  await new Promise<void>((resolve) => {
    const watcher = watch(folder, () => look());
    const look = (): void => {
      if (readdirSync(folder).length > 0) return;
      watcher.close();
      resolve();
    };
    look();
  });
}

describe('a terminal that is removed', () => {
  it('[SV33] leaves nothing to the next one of its id', async () => {
    const client = NativeClient.of(await fresh());
    await openPrinting(client, 'again', 'FIRST');
    expect(await shown(client, 'again')).toContain('FIRST');
    expect((await client.delete('/v1/processes/again?force=true')).status).toBe(200);
    await openPrinting(client, 'again', 'SECOND');
    expect(await shown(client, 'again')).toMatch(/^SECOND\n/);
  });

  it('[SV34] takes its screens along, also when another program removes it', async () => {
    const served = await fresh();
    const client = NativeClient.of(served);
    const { id, pid, startedAtMs } = await openPrinting(client, 'kept', 'KEPT');
    const name = `${id}.${startedAtMs.toString(36)}.${pid.toString(36)}`;
    const folder = join(served.home, 'terminals');
    mkdirSync(join(folder, name), { recursive: true });
    writeFileSync(join(folder, name, 'picture.png'), 'x');
    // Not by the server: as the command line and retention do.
    const link = await served.server.host.link();
    await link.remove('*', { id, force: true });
    await emptied(folder);
    expect((await client.get(`/v1/terminals/${id}/snapshot`)).status).toBe(404);
  });

  it('[SV34] is cleaned up by the next server', async () => {
    const first = await fresh();
    const client = NativeClient.of(first);
    const { id, pid, startedAtMs } = await openPrinting(client, 'alive', 'ALIVE');
    const folder = join(first.home, 'terminals');
    const own = `${id}.${startedAtMs.toString(36)}.${pid.toString(36)}`;
    for (const name of [own, 'gone.abc.1']) mkdirSync(join(folder, name), { recursive: true });
    await first.server.close();
    const second = await serve({ home: first.home });
    onCleanup(() => second.server.close());
    expect(readdirSync(folder)).toEqual([own]);
  });
});

describe('a wait on a screen', () => {
  it('[SV36] goes on behind a limit of the moment, and says what ended the reading', async () => {
    const host = await inProcess();
    const screens = new Screens({ clock: systemClock });
    onCleanup(() => screens.close());
    const faults: HoldfastError[] = [];
    const faulty: HostApi = Object.assign(Object.create(host) as HostApi, {
      read: (...args: Parameters<HostApi['read']>) => {
        const fault = args[1].waitMs === undefined ? undefined : faults.shift();
        return fault ? Promise.reject(fault) : host.read(...args);
      },
    });
    const open = async (id: string): ReturnType<typeof openSession> => {
      await host.start('o', { id, argv: ['cat'], streams: 'pty' });
      const options = { host: faulty, screens: async () => screens, answers: false };
      const session = await openSession('o', id, options);
      onCleanup(() => session.close());
      return session;
    };
    const session = await open('a');
    faults.push(new HoldfastError('limit_reached', 'parkedWaits'));
    const waiting = session.wait({ text: 'typed' }, { timeoutMs: 30_000 });
    await session.type('typed\n');
    expect(await waiting).toMatchObject({ matched: true });
    const other = await open('b');
    faults.push(new HoldfastError('journal_damaged', 'torn'));
    const failed = other.wait({ text: 'never' }, { timeoutMs: 30_000 });
    await expect(failed).rejects.toMatchObject({ code: 'journal_damaged' });
  });
});

describe('tokens and bodies', () => {
  it('[SV35] a revoked token takes its MCP sessions along', async () => {
    const served = await fresh();
    const [one, two] = ['a', 'b'].map((name) => served.tokens.create(`chat:${name}`));
    if (!one || !two) throw new Error('no tokens');
    const post = (token: string): Promise<Response> =>
      fetch(`${served.server.url}/mcp`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
        },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'initialize',
          params: {
            protocolVersion: '2025-06-18',
            capabilities: {},
            clientInfo: { name: 'test', version: '1' },
          },
        }),
      });
    const hello = await post(one.token);
    await hello.text();
    const stream = await fetch(`${served.server.url}/mcp`, {
      headers: {
        authorization: `Bearer ${one.token}`,
        accept: 'text/event-stream',
        'mcp-session-id': hello.headers.get('mcp-session-id') ?? '',
      },
    });
    expect([hello.status, stream.status]).toEqual([200, 200]);
    served.tokens.revoke(one.info.id);
    await (await post(two.token)).text();
    // The stream of notifications ends with its session.
    await stream.text();
  });

  it('[SV37] a body of very many values is refused in every dialect, one of long text is not', async () => {
    const served = await fresh();
    const client = NativeClient.of(served);
    const many = JSON.stringify({ command: 'true', x: Array(30_000).fill(0) });
    const deep = `{"command":"true","x":${'['.repeat(200_000)}${']'.repeat(200_000)}}`;
    for (const path of ['/v1/processes', '/api/v0/processes/start', '/mcp'])
      for (const raw of [many, deep])
        expect((await client.call('POST', path, { raw })).status).toBe(413);
    const command = `true ${',[{"\\\\'.repeat(30_000)}`;
    const { status } = await client.post('/v1/processes', {
      argv: ['true', command.slice(0, 100_000)],
    });
    expect(status).toBe(200);
  });
});
