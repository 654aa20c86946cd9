// The fleet as a person meets it: `holdfast join`, `holdfast gateway`, `holdfast fleet`, and a server of a host that is killed.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connect, type Holdfast } from '../../src/index.ts';
import { callServer } from '../../src/cli/local/call-server.ts';
import { firstLine, Place, type Running } from '../support/command-line.ts';
import { hasNats, LEFT_OUT, NatsServer, sharedNats } from '../support/nats.ts';

let place: Place;
const started: Running[] = [];
beforeEach(() => {
  place = new Place();
});
afterEach(async () => {
  for (const program of started.splice(0)) {
    program.child.kill('SIGTERM');
    await program.ended;
  }
  await place.close();
});

async function ready(...args: string[]): Promise<{ url: string; home: string; pid: number }> {
  const program = place.start(...args, '--json');
  started.push(program);
  const line = await firstLine(program.child.stdout as NodeJS.ReadableStream);
  return JSON.parse(line) as { url: string; home: string; pid: number };
}

/** The states of the hosts, asked until they are these. */
async function states(wanted: Record<string, string>): Promise<void> {
  for (;;) {
    const answer = await callServer(join(place.home, 'gateway'), '/v1/hosts');
    const { hosts } = answer as { hosts: { name: string; state: string; drain: boolean }[] };
    const now = Object.fromEntries(
      hosts.map(({ name, state, drain }) => [name, drain ? 'draining' : state]),
    );
    if (JSON.stringify(now) === JSON.stringify(wanted)) return;
  }
}

async function openClient(url: string, home: string): Promise<Holdfast> {
  const token = (await place.run('token', 'admin', '--home', home)).stdout.trim();
  return connect({ url, token });
}

describe.skipIf(!hasNats)(`the programs of a fleet${LEFT_OUT}`, () => {
  it('[FL30] a host joins, serves a gateway, survives its server, drains and leaves', async () => {
    const { url } = await sharedNats();
    const gateway = await ready('gateway', url, '--name', 'g1');
    expect(gateway.home).toBe(join(place.home, 'gateway'));
    const server = await ready('join', url, '--name', 'h1', '--label', 'pool=a');
    await states({ h1: 'here' });
    expect((await place.run('fleet', 'hosts')).stdout).toMatch(/^h1 +here .* pool=a$/m);
    const client = await openClient(gateway.url, gateway.home);
    const process = await client.start('echo begun; read _; exit 9', { stdin: 'pipe' });
    await process.waitForLog('begun');
    const local = await place.json('inspect', process.id);
    expect(local.result).toMatchObject({ process: { id: process.id, state: 'running' } });
    const waited = process.waitForExit();
    globalThis.process.kill(server.pid, 'SIGKILL');
    await states({ h1: 'cut' });
    await ready('serve');
    await states({ h1: 'here' });
    await process.stdin.end('\n');
    expect((await waited).exitCode).toBe(9);
    expect((await place.run('fleet', 'drain')).stdout).toContain('"h1" gets no new processes');
    await states({ h1: 'draining' });
    await expect(client.start('true')).rejects.toMatchObject({ code: 'no_host' });
    expect((await place.run('fleet', 'leave')).stdout).toContain('leaves the fleet');
    await states({});
    await client.close();
  });

  it('[FL58] a host that never returns is forgotten by a command', async () => {
    const nats = await NatsServer.withJetStream();
    try {
      const gateway = await ready('gateway', nats.url, '--name', 'g1');
      const server = await ready('join', nats.url, '--name', 'h1');
      await states({ h1: 'here' });
      const client = await openClient(gateway.url, gateway.home);
      await client.start('true', { key: 'k' });
      const ends = await callServer(gateway.home, '/v1/completions?waitMs=60000');
      expect(ends).toMatchObject({ completions: [{ outcome: { kind: 'exit', code: 0 } }] });
      const unknown = await place.run('fleet', 'forget', 'h2', '--nats', nats.url);
      expect(unknown.stderr).toContain('The ledger knows no host "h2".');
      process.kill(server.pid, 'SIGSTOP');
      const forgotten = await place.run('fleet', 'forget', 'h1', '--nats', nats.url);
      process.kill(server.pid, 'SIGCONT');
      expect(forgotten.stdout).toContain('"h1" is forgotten: ');
    } finally {
      await nats.remove();
    }
  });

  it('[FL45] the keys of a fleet are made, a host and a gateway are admitted, and a stranger is not let in', async () => {
    const keys = join(place.folder, 'keys');
    await place.run('fleet', 'init', '--keys', keys);
    const config = readFileSync(join(keys, 'nats.conf'), 'utf8');
    const nats = await NatsServer.start(config.replace(/^listen:.*$/m, ''));
    try {
      const admission = async (name: string, ...role: string[]): Promise<string> => {
        const key = (await place.run('fleet', 'key', ...role)).stdout.trim();
        const { stdout } = await place.run('fleet', 'admit', name, key, '--keys', keys, ...role);
        const path = join(place.folder, name);
        writeFileSync(path, stdout);
        return path;
      };
      await ready('gateway', nats.url, '--admission', await admission('g1', '--gateway'));
      await ready('join', nats.url, '--admission', await admission('h1'));
      await states({ h1: 'here' });
      const wrong = await place.json('fleet', 'admit', 'h2', 'UAAA', '--keys', keys);
      expect(wrong.error).toMatchObject({ code: 'invalid_input' });
      const forgotten = await place.json('fleet', 'forget', 'h1', '--keys', keys);
      expect(forgotten.ok).toBe(true);
      nats.reload(readFileSync(join(keys, 'nats.conf'), 'utf8').replace(/^listen:.*$/m, ''));
      await states({ h1: 'cut' });
    } finally {
      await nats.remove();
    }
  });

  it('[FL31] an address that is not on this machine is refused without TLS, and a name that is none', async () => {
    const remote = await place.json('join', 'nats://10.0.0.1:4222');
    expect(remote.error).toMatchObject({ code: 'forbidden' });
    const odd = await place.json('join', 'http://127.0.0.1:4222');
    expect(odd.error).toMatchObject({ code: 'invalid_input' });
    const name = await place.json('join', 'nats://127.0.0.1:4222', '--name', 'a.b');
    expect(name.error).toMatchObject({ code: 'invalid_input' });
    const gateway = await place.json('gateway', 'nats://10.0.0.1:4222');
    expect(gateway.error).toMatchObject({ code: 'forbidden' });
    const absent = await place.json('fleet', 'leave');
    expect(absent.error).toMatchObject({ code: 'not_found' });
  });
});
