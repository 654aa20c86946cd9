// The fleet as a person meets it: `holdfast join`, `holdfast gateway`, `holdfast fleet`, and a server of a host that is killed.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { callServer } from '../../src/cli/local/call-server.ts';
import { Running } from '../support/command-line.ts';
import { FleetPlace } from '../support/fleet-place.ts';
import { hasNats, LEFT_OUT, NatsServer, sharedNats } from '../support/nats.ts';

let place: FleetPlace;
beforeEach(() => {
  place = new FleetPlace();
});
afterEach(() => place.close());

describe.skipIf(!hasNats)(`the programs of a fleet${LEFT_OUT}`, () => {
  it('[FL30][FL32] a host joins, serves a gateway, survives its server, drains and leaves', async () => {
    const { url } = await sharedNats();
    const gateway = await place.ready('gateway', url, '--name', 'g1');
    expect(gateway.home).toBe(join(place.home, 'gateway'));
    const server = await place.ready('join', url, '--name', 'h1', '--label', 'pool=a');
    await place.states({ h1: 'here' });
    expect((await place.run('fleet', 'hosts')).stdout).toMatch(/^h1 +here .* pool=a$/m);
    const client = await place.client(gateway.url, gateway.home);
    const process = await client.start('echo begun; read _; exit 9', { stdin: 'pipe' });
    await process.waitForLog('begun');
    const local = await place.json('inspect', process.id);
    expect(local.result).toMatchObject({ process: { id: process.id, state: 'running' } });
    const waited = process.waitForExit();
    globalThis.process.kill(server.pid, 'SIGKILL');
    await place.states({ h1: 'cut' });
    // Its keeper starts it again.
    await place.states({ h1: 'here' });
    await process.stdin.end('\n');
    expect((await waited).exitCode).toBe(9);
    expect((await place.run('fleet', 'drain')).stdout).toContain('"h1" gets no new processes');
    await place.states({ h1: 'draining' });
    await expect(client.start('true')).rejects.toMatchObject({ code: 'no_host' });
    expect((await place.run('fleet', 'leave')).stdout).toContain('leaves the fleet');
    await place.states({});
    await client.close();
  });

  it('[FL33] the command line finds the processes of all hosts, by HOST/ID', async () => {
    const { url } = await sharedNats();
    const none = await place.run('ps', '--fleet');
    expect([none.code, none.stderr]).toEqual([11, expect.stringContaining('No gateway runs in')]);
    const gateway = await place.ready('gateway', url, '--name', 'g1');
    await place.ready('join', url, '--name', 'h1');
    await place.states({ h1: 'here' });
    const client = await place.client(gateway.url, gateway.home);
    const { id } = await client.start('echo begun; read x; echo got $x; exit 4', {
      stdin: 'pipe',
      name: 'asks',
    });
    expect((await place.run('ps', '--fleet')).stdout).toMatch(new RegExp(`^h1/${id}\t`));
    expect((await place.run('ps', '--fleet', '-q')).stdout).toBe(`h1/${id}\n`);
    expect((await place.json('inspect', `h1/${id.slice(0, 12)}`)).result).toMatchObject({
      process: { id, host: 'h1' },
      descendants: [],
    });
    expect((await place.run('inspect', 'h1/asks')).stdout).toMatch(/^host +h1$/m);
    expect((await place.run('send', `h1/${id}`, 'x')).code).toBe(0);
    expect((await place.run('wait', `h1/${id}`)).code).toBe(4);
    expect((await place.run('logs', `h1/${id}`)).stdout).toBe('begun\ngot x\n');
    const elsewhere = await place.run('logs', `h2/${id}`);
    expect([elsewhere.code, elsewhere.stderr]).toEqual([3, expect.stringContaining('not found')]);
    const local = await place.background('--name', 'h1/local', 'sleep 600');
    expect((await place.json('inspect', 'h1/local')).result).toMatchObject({
      process: { id: local },
    });
    const mixed = await place.json('stop', local, `h1/${id}`);
    expect(JSON.stringify(mixed)).toContain('Name them in two commands');
    const within = await place.run('run', `holdfast ps --fleet --home ${place.home}; true`);
    expect(within.stdout).not.toContain(id);
    await client.close();
  });

  it('[FL35] the demo shows the death of a host and leaves nothing behind', async () => {
    const env = { ...place.env, TMPDIR: place.folder };
    const { stdout, stderr } = await new Running(['fleet', 'demo', '--json'], { env }).ended;
    expect(stderr).toBe('');
    const { result } = JSON.parse(stdout) as { result: { where: string } };
    expect(result).toMatchObject({ lost: 'h1', incomplete: ['h1'] });
    expect(['h2', 'h3']).toContain(result.where);
    const left = readdirSync(place.folder).filter((name) => name.startsWith('holdfast-demo-'));
    expect(left).toEqual([]);
    const none = { ...env, HOLDFAST_NATS: '/nowhere' };
    const refused = await new Running(['fleet', 'demo'], { env: none }).ended;
    expect(refused.stderr).toContain('There is no nats-server at /nowhere.');
  });

  it('[FL58] a host that never returns is forgotten by a command', async () => {
    const nats = await NatsServer.withJetStream();
    try {
      const gateway = await place.ready('gateway', nats.url, '--name', 'g1');
      const server = await place.ready('join', nats.url, '--name', 'h1');
      await place.states({ h1: 'here' });
      const client = await place.client(gateway.url, gateway.home);
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
      await place.ready('gateway', nats.url, '--admission', await admission('g1', '--gateway'));
      await place.ready('join', nats.url, '--admission', await admission('h1'));
      await place.states({ h1: 'here' });
      const wrong = await place.json('fleet', 'admit', 'h2', 'UAAA', '--keys', keys);
      expect(wrong.error).toMatchObject({ code: 'invalid_input' });
      const forgotten = await place.json('fleet', 'forget', 'h1', '--keys', keys);
      expect(forgotten.ok).toBe(true);
      nats.reload(readFileSync(join(keys, 'nats.conf'), 'utf8').replace(/^listen:.*$/m, ''));
      await place.states({ h1: 'cut' });
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

  it('[FL37] labels that no gateway takes are refused, and nothing is joined', async () => {
    const many = Array.from({ length: 33 }, (_, at) => ['--label', `l${at}=x`]).flat();
    for (const labels of [
      many,
      ['--label', `${'n'.repeat(65)}=x`],
      ['--label', `n=${'x'.repeat(65)}`],
    ]) {
      const { error } = await place.json('join', 'nats://127.0.0.1:4222', ...labels);
      expect(error).toMatchObject({ code: 'invalid_input' });
      expect(error['message']).toContain('at most 32, with at most 64 characters');
    }
    expect((await place.json('fleet', 'leave')).error).toMatchObject({ code: 'not_found' });
  });
});
