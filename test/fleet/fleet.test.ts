// Many hosts behind gateways, over a real NATS server: where processes go, how they are found, and what a list lacks.

import { describe, expect, it } from 'vitest';
import { splitServers, isLoopback } from '../../src/fleet/wire/addresses.ts';
import { clientOptions } from '../../src/fleet/wire/fabric.ts';
import { checkName, nameFrom, readAnswer, readUp } from '../../src/fleet/wire/subjects.ts';
import { systemClock } from '../../src/base/clock.ts';
import { listAll } from '../../src/protocol/list-all.ts';
import { decodeRecords } from '../../src/protocol/record.ts';
import { fleetOf, gatewayTo, joined, seen } from '../support/fleet.ts';
import { failure, inProcess, OWNER, startProcess, waitFor } from '../support/hosts.ts';
import { hasNats, LEFT_OUT, sharedNats } from '../support/nats.ts';

const exit = { kind: 'exit' } as const;

describe('names', () => {
  it('[FL1] a name is one token of a subject: wildcards, dots, spaces, capitals and Unicode are refused', () => {
    for (const name of ['a.b', '*', '>', 'a b', 'A', 'ü', '', '-a', 'a'.repeat(64), 'a\n'])
      expect(() => checkName('host', name)).toThrow('is not a name of a host');
    expect(checkName('gateway', 'g-1')).toBe('g-1');
    expect(nameFrom('Über.Host_7.example')).toBe('ber-host-7-example');
    expect(nameFrom('...')).toBe('host');
  });

  it('[FL1] a request decides nothing about where a host publishes', () => {
    const good = '_hf.r.g.h.control.12';
    expect(readAnswer(good)).toEqual({ gateway: 'g', host: 'h', lane: 'control', number: 12 });
    const bad = [
      '_hf.r.g.h.control',
      `${good}.x`,
      '_hf.r.*.h.bulk.1',
      '_hf.r.g.>.bulk.1',
      'hf.up.x.beat',
    ];
    for (const subject of [...bad, '_hf.r.g.h.other.1', '_hf.r.g.h.bulk.x', undefined])
      expect(readAnswer(subject)).toBeUndefined();
    expect(readUp('hf.up.h1.beat')).toEqual({ name: 'h1', kind: 'beat' });
    for (const subject of ['hf.up.h1', 'hf.up.h1.beat.x', 'hf.up.*.beat'])
      expect(readUp(subject)).toBeUndefined();
  });

  it('[FL2] the client of NATS never gives up, and notices a stopped server within seconds', () => {
    const report = (): void => undefined;
    const options = clientOptions({ servers: ['nats://a'], name: 'h', clock: systemClock, report });
    expect(options).toMatchObject({
      maxReconnectAttempts: -1,
      pingInterval: 1000,
      maxPingOut: 2,
      timeout: 1000,
      ignoreAuthErrorAbort: true,
      inboxPrefix: '_hf.i.h',
    });
    expect(splitServers('nats://a:1, nats://b:2')).toEqual(['nats://a:1', 'nats://b:2']);
    expect(['localhost', '127.0.0.2', '[::1]'].every(isLoopback)).toBe(true);
    expect(['10.0.0.1', 'nats.example', '127.0.0.1.example'].some(isLoopback)).toBe(false);
  });
});

describe.skipIf(!hasNats)(`a fleet${LEFT_OUT}`, () => {
  it('[FL3] an id carries its host: any gateway finds the process, and says which host has it', async () => {
    const { api, hosts } = await fleetOf({}, {}, {});
    const other = await gatewayTo(hosts.map(({ name }) => name));
    for (let count = 0; count < 6; count += 1) {
      const { process } = await api.start(OWNER, { command: `exit ${count}`, waitMs: 60_000 });
      const { name, host } = hosts.find((each) => each.name === process.host) ?? {};
      expect(process.id).toHaveLength(26);
      expect((await host?.get(OWNER, { id: process.id }))?.pid).toBe(process.pid);
      const found = await other.host.get(OWNER, { id: process.id });
      expect(found).toMatchObject({ host: name, outcome: { kind: 'exit', code: count } });
    }
    const unknown = await failure(api.get(OWNER, { id: 'nobody' }));
    expect(unknown.code).toBe('not_found');
    const foreign = await api.start(OWNER, { command: 'true' });
    expect((await failure(api.get('other', { id: foreign.process.id }))).code).toBe('not_found');
  });

  it('[FL4] what a host started by itself is found, read and ended through a gateway', async () => {
    const { api, hosts } = await fleetOf({}, {});
    const [, second] = hosts;
    const own = await second?.host.start(OWNER, {
      command: 'echo here; exec sleep 600',
      id: 'mine',
    });
    await waitFor(api, 'mine', { kind: 'text', text: 'here' });
    expect(await api.get(OWNER, { id: 'mine' })).toMatchObject({ host: second?.name });
    await api.signal('*', { id: 'mine', signal: 'SIGKILL' });
    const { process } = await waitFor(api, 'mine', exit);
    expect(process).toMatchObject({ pid: own?.process.pid, outcome: { kind: 'signal' } });
    await api.remove(OWNER, { id: 'mine' });
    expect((await failure(api.get(OWNER, { id: 'mine' }))).code).toBe('not_found');
  });

  it('[FL5] the same keyed start at two gateways is one process, as are its repetitions', async () => {
    const { api, hosts } = await fleetOf({}, {}, {});
    const other = await gatewayTo(hosts.map(({ name }) => name));
    const spec = { command: 'sleep 600', key: 'deploy' };
    const starts = await Promise.all(
      [api, other.host, api, other.host].map((each) => each.start(OWNER, spec)),
    );
    expect(new Set(starts.map(({ process }) => process.id)).size).toBe(1);
    expect(starts.filter(({ attached }) => !attached)).toHaveLength(1);
    const conflict = failure(other.host.start(OWNER, { ...spec, command: 'true' }));
    expect((await conflict).code).toBe('key_conflict');
    const chosen = await Promise.all(
      [api, other.host].map((each) => each.start(OWNER, { command: 'sleep 601', id: 'chosen' })),
    );
    expect(chosen.filter(({ attached }) => !attached)).toHaveLength(1);
    expect((await api.list(OWNER, {})).total).toBe(2);
  });

  it('[FL6] a start goes to a host with its labels that is not draining; a workspace stays on its host', async () => {
    const { api, hosts, gateway } = await fleetOf({ labels: { pool: 'gpu' } }, {}, {});
    const [gpu, plain] = hosts;
    const start = async (labels: Record<string, string>) =>
      (await api.start(OWNER, { command: 'true', labels })).process.host;
    expect(await start({ 'host.pool': 'gpu' })).toBe(gpu?.name);
    expect(await start({ 'host.name': plain?.name ?? '' })).toBe(plain?.name);
    const none = await failure(api.start(OWNER, { command: 'true', labels: { 'host.pool': 'x' } }));
    expect([none.code, none.message]).toEqual(['no_host', 'There is no host with host.pool=x.']);
    const first = await start({ workspace: 'w1' });
    for (let count = 0; count < 5; count += 1) expect(await start({ workspace: 'w1' })).toBe(first);
    const changed = gateway.changed();
    gpu?.joiner.drain(true);
    while (!gateway.hosts().some(({ beat }) => beat.drain))
      await Promise.race([changed, beatOf(gateway)]);
    const drained = await failure(
      api.start(OWNER, { command: 'true', labels: { 'host.pool': 'gpu' } }),
    );
    expect(drained.message).toContain('1 are draining');
  });

  it('[FL7] a list holds the processes of all hosts, the newest first, and each of them once in its pages', async () => {
    const { api, hosts } = await fleetOf({}, {}, {});
    const ids: string[] = [];
    for (let count = 0; count < 12; count += 1)
      ids.push(await startProcess(hosts[count % 3]?.host ?? api, { command: 'sleep 600' }));
    const { processes, total } = await api.list(OWNER, {});
    expect(total).toBe(12);
    const times = processes.map(({ startedAtMs }) => startedAtMs);
    expect(times).toEqual(times.toSorted((a, b) => b - a));
    expect((await api.list(OWNER, { limit: 5, skip: 10 })).processes).toHaveLength(2);
    for (const limit of [1, 4, 1000]) {
      const all = await listAll((page) => api.list(OWNER, { ...page, limit }));
      expect(all.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    }
    expect((await api.owners('*', {})).owners).toMatchObject([{ owner: OWNER, live: 12 }]);
    expect(await api.health('*', {})).toMatchObject({ live: 12, ended: 0 });
  });

  it('[FL8] a wait for processes of several hosts ends with the first, or with all of them', async () => {
    const { api, hosts } = await fleetOf({}, {});
    const on = (index: number, command: string): Promise<string> =>
      startProcess(api, { command, labels: { 'host.name': hosts[index]?.name ?? '' } });
    const [slow, fast] = [await on(0, 'sleep 600'), await on(1, 'exit 3')];
    const waits = [slow, fast].map((id) => ({ id, for: [exit] }));
    const first = await api.wait(OWNER, { waits });
    expect(first.met.map(({ id }) => id)).toEqual([fast]);
    const timedOut = await api.wait(OWNER, { waits, mode: 'all', timeoutMs: 50 });
    expect(timedOut).toEqual({ met: [], timedOut: true });
    const all = api.wait(OWNER, { waits, mode: 'all' });
    await api.signal(OWNER, { id: slow, signal: 'SIGTERM' });
    expect((await all).met.map(({ id, process }) => [id, process.host])).toEqual([
      [slow, hosts[0]?.name],
      [fast, hosts[1]?.name],
    ]);
  });

  it('[FL9] completions of all hosts come with every ask until they are acknowledged, at any gateway', async () => {
    const { api, hosts } = await fleetOf({}, {});
    const other = await gatewayTo(hosts.map(({ name }) => name));
    const waiting = api.completions(OWNER, { subscriber: 's', waitMs: 60_000 });
    for (const { host } of hosts) await startProcess(host, { command: 'exit 4' });
    expect((await waiting).completions.length).toBeGreaterThan(0);
    const told = async (): Promise<number[]> => {
      const { completions } = await other.host.completions(OWNER, { subscriber: 's' });
      return completions.map(({ number }) => number);
    };
    while ((await told()).length < 2) await api.completions(OWNER, { waitMs: 100, after: 2 ** 47 });
    const [first = 0, second = 0] = await told();
    expect(first).toBeLessThanOrEqual(second);
    const { completions } = await api.completions(OWNER, { subscriber: 's', after: first });
    expect(completions.map(({ number }) => number)).toEqual(first === second ? [] : [second]);
    expect(await api.acknowledge(OWNER, { subscriber: 's', numbers: [first, second] })).toEqual({
      acknowledged: 2,
    });
    expect(await told()).toEqual([]);
  });

  it('[FL10] changes of the list come from all hosts; a gateway that does not know the reader begins anew', async () => {
    const { api, hosts, gateway } = await fleetOf({}, {});
    const begun = await api.changes(OWNER, {});
    expect(begun).toMatchObject({ reset: true, changed: [] });
    const waiting = api.changes(OWNER, {
      epoch: begun.epoch,
      after: begun.version,
      waitMs: 60_000,
    });
    const id = await startProcess(hosts[1]?.host ?? api, { command: 'sleep 600' });
    const next = await waiting;
    expect(next.reset).toBe(false);
    expect(next.changed.map((row) => [row.id, row.host])).toEqual([[id, hosts[1]?.name]]);
    const elsewhere = await gatewayTo(gateway.hosts().map(({ name }) => name));
    const anew = await elsewhere.host.changes(OWNER, { epoch: next.epoch, after: next.version });
    expect(anew.reset).toBe(true);
    expect(anew.changed.map((row) => row.id)).toEqual([id]);
    await hosts[1]?.joiner.close();
    await seen(gateway, hosts[1]?.name ?? '', 'gone');
    const left = await api.changes(OWNER, { epoch: next.epoch, after: next.version });
    expect(left).toMatchObject({ reset: true, changed: [] });
  });

  it('[FL11] requests and answers above the size of a message come whole', async () => {
    const { api } = await fleetOf({});
    const value = 'v'.repeat(120_000);
    const set = Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`BIG_${at}`, value]));
    const id = await startProcess(api, { command: 'wc -c; env', stdin: 'pipe', env: set });
    await api.write(OWNER, { id, data: Buffer.alloc(3_000_000, 'x'), eof: true });
    const { process } = await waitFor(api, id, { kind: 'closed' });
    expect(process.bytes.total).toBeGreaterThan(1_440_000);
    const { bytes } = await api.range(OWNER, { id, offset: 0, maxBytes: 4 * 1024 * 1024 });
    expect(bytes.length).toBe(process.bytes.total);
    expect(bytes.subarray(0, 8).toString()).toBe('3000000\n');
    const page = await api.read(OWNER, { id, maxBytes: 4 * 1024 * 1024 });
    const output = [...decodeRecords(page.records)].flatMap((event) =>
      event.kind === 'output' ? [event.data] : [],
    );
    expect(Buffer.concat(output).equals(bytes)).toBe(true);
    const wide = { maxBytes: 1024 * 1024, maxLineBytes: 1024 * 1024 };
    expect((await api.text(OWNER, { id, ...wide })).text.length).toBeGreaterThan(900_000);
  });

  it('[FL46] an output that is read piece by piece comes whole, also while it grows', async () => {
    const { api } = await fleetOf({});
    const command = 'seq 1 200000; read _; seq 200001 400000';
    const id = await startProcess(api, { command, stdin: 'pipe' });
    await waitFor(api, id, { kind: 'text', text: '200000' });
    const parts: Buffer[] = [];
    for (let offset = 0, grown = false; ;) {
      const { bytes, end } = await api.range(OWNER, { id, offset, maxBytes: 100_000 });
      parts.push(bytes);
      offset += bytes.length;
      if (end) break;
      if (bytes.length > 0) continue;
      if (!grown) await api.write(OWNER, { id, data: Buffer.from('\n'), eof: true });
      grown = true;
      await waitFor(api, id, { kind: 'closed' });
    }
    const numbers = Array.from({ length: 400_000 }, (_, index) => index + 1);
    expect(Buffer.concat(parts).toString()).toBe(`${numbers.join('\n')}\n`);
  });

  it('[FL12] a host works only for the owners that it admits, and changes nothing in the name of all', async () => {
    const { api, hosts } = await fleetOf({ owners: ['acme:*'] });
    const refused = await failure(api.start('other', { command: 'true' }));
    expect([refused.code, refused.message]).toEqual([
      'forbidden',
      `The host "${hosts[0]?.name}" does not work for the owner "other".`,
    ]);
    expect((await failure(api.start('*', { command: 'true' }))).code).toBe('forbidden');
    const { process } = await api.start('acme:1', { command: 'true', waitMs: 60_000 });
    expect(process.outcome).toEqual({ kind: 'exit', code: 0 });
    expect((await api.list('other', {})).total).toBe(0);
    expect((await api.list('*', {})).total).toBe(1);
  });

  it('[FL13] a host that leaves is gone at once, and its processes continue', async () => {
    const { gateway, api, hosts } = await fleetOf({}, {});
    const [first] = hosts;
    const id = await startProcess(api, {
      command: 'sleep 600',
      labels: { 'host.name': first?.name ?? '' },
    });
    await first?.joiner.close();
    await seen(gateway, first?.name ?? '', 'gone');
    expect((await first?.host.get(OWNER, { id }))?.state).toBe('running');
    expect((await failure(api.get(OWNER, { id }))).code).toBe('not_found');
    expect(await api.list(OWNER, {})).toEqual({ processes: [], total: 0 });
  });

  it('[FL14] a name that two servers use is refused, and neither carries out what the other was asked', async () => {
    const { gateway, hosts, api } = await fleetOf({});
    const { name = '' } = hosts[0] ?? {};
    await joined({ name, host: await inProcess() });
    await seen(gateway, name, 'conflict');
    const refused = await failure(api.start(OWNER, { command: 'true' }));
    expect(refused.code).toBe('no_host');
    expect((await failure(api.get(OWNER, { id: 'x' }))).message).toContain('two servers use');
  });

  it('[FL15] without hosts a gateway says so, and without NATS it says where it looked', async () => {
    const gateway = await gatewayTo([], { servers: [(await sharedNats()).url] });
    const none = await failure(gateway.host.start(OWNER, { command: 'true' }));
    expect([none.code, none.message]).toEqual(['no_host', 'There is no host.']);
    const { openGateway } = await import('../../src/fleet/gateway/gateway.ts');
    const away = openGateway({
      name: 'g',
      servers: ['nats://127.0.0.1:1'],
      report: () => undefined,
    });
    const problem = await failure(away.host.list(OWNER, {}));
    expect(problem.code).toBe('fabric_degraded');
    expect(problem.message).toContain('There is no connection to NATS at nats://127.0.0.1:1');
    await away.close();
  });
});

/** Resolves at the next beat that changes nothing else. */
function beatOf(gateway: { changed(): Promise<void> }): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
    void gateway.changed().then(resolve);
  });
}
