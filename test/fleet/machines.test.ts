// What a fleet does when a keeper, a gateway or a node of NATS dies, a clock is wrong, or a host lies.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { connect } from '../../src/index.ts';
import type { HostApi } from '../../src/protocol/host-api.ts';
import { FleetPlace } from '../support/fleet-place.ts';
import { gatewayTo, joined, seen } from '../support/fleet.ts';
import { inProcess, onCleanup, OWNER, startProcess, waitFor } from '../support/hosts.ts';
import { hasNats, LEFT_OUT, NatsServer, sharedNats } from '../support/nats.ts';

const exit = { kind: 'exit' } as const;

function newPlace(): FleetPlace {
  const place = new FleetPlace();
  onCleanup(() => place.close());
  return place;
}

describe.skipIf(!hasNats)(`a fleet${LEFT_OUT}`, () => {
  it('[FL27] reports the processes of a killed keeper as lost, once, and keeps their output', async () => {
    const place = newPlace();
    const nats = await NatsServer.withJetStream();
    onCleanup(() => nats.remove());
    const gateway = await place.ready('gateway', nats.url, '--name', 'g1');
    const host = await place.ready('join', nats.url, '--name', 'h1');
    await place.states({ h1: 'here' });
    const client = await place.client(gateway.url, gateway.home);
    const begun = await client.start('echo begun; exec sleep 600');
    await begun.waitForLog('begun');
    const waited = begun.waitForExit();
    process.kill(host.keeperPid, 'SIGKILL');
    expect(await waited).toMatchObject({ outcome: { kind: 'lost' } });
    expect((await begun.output()).text).toBe('begun\n');
    await client.start('true', { name: 'next' });
    const told: string[] = [];
    for await (const { name = '', id } of client.events()) {
      told.push(id);
      if (name === 'next') break;
    }
    expect(told.filter((id) => id === begun.id)).toHaveLength(1);
    await client.close();
  });

  it('[FL34] answers the waits of a killed gateway through another one', async () => {
    const place = newPlace();
    const { url } = await sharedNats();
    const file = join(place.folder, 'token');
    const token = ['--token-file', file];
    const one = await place.ready('gateway', url, '--name', 'g1', ...token);
    const home = join(place.folder, 'second');
    const other = await place.ready('gateway', url, '--name', 'g2', '--home', home, ...token);
    await place.ready('join', url, '--name', 'h1');
    await place.states({ h1: 'here' });
    const client = await connect({
      url: [one.url, other.url],
      token: readFileSync(file, 'utf8').trim(),
    });
    const asking = await client.start('read x; exit 7', { stdin: 'pipe' });
    const waits = Array.from({ length: 50 }, () => asking.waitForExit());
    process.kill(one.pid, 'SIGKILL');
    await asking.stdin.end('\n');
    for (const result of await Promise.all(waits)) expect(result.exitCode).toBe(7);
    expect((await client.get(asking.id)).id).toBe(asking.id);
    await client.close();
  });

  it('[FL28] goes on when the node of NATS that it uses hangs', async () => {
    const cluster = await NatsServer.cluster();
    for (const node of cluster) onCleanup(() => node.remove());
    const [node] = cluster as [NatsServer];
    const servers = [node.url];
    const { name } = await joined({ host: await inProcess(), servers });
    const gateway = await gatewayTo([name], { servers });
    const api = gateway.host;
    const id = await startProcess(api, { command: 'read _; exit 3', stdin: 'pipe' });
    const waited = waitFor(api, id, exit);
    node.signal('SIGSTOP');
    const isReached = (): Promise<boolean> =>
      api.get(OWNER, { id }).then(
        () => true,
        () => false,
      );
    while (!(await isReached())) continue;
    await api.write(OWNER, { id, data: Buffer.from('\n') });
    expect((await waited).process.outcome).toEqual({ kind: 'exit', code: 3 });
  });

  it('[FL29] does not depend on the clocks of its hosts', async () => {
    const nats = await NatsServer.withJetStream();
    onCleanup(() => nats.remove());
    const servers = [nats.url];
    const DAY_MS = 86_400_000;
    const off = (ms: number) => ({
      nowUs: () => systemClock.nowUs() + Math.abs(ms) * 1000,
      wallMs: () => systemClock.wallMs() + ms,
      after: systemClock.after.bind(systemClock),
    });
    const hosts = [];
    for (const ms of [-DAY_MS, DAY_MS, 0]) {
      const clock = off(ms);
      hosts.push(await joined({ host: await inProcess({ clock }), clock, servers }));
    }
    const names = hosts.map(({ name }) => name);
    const gateway = await gatewayTo(names, { servers });
    const api = gateway.host;
    const ids: string[] = [];
    for (const name of [...names, ...names]) {
      const labels = { 'host.name': name };
      const { process } = await api.start(OWNER, { command: 'exit 2', labels, waitMs: 60_000 });
      expect(process).toMatchObject({ host: name, outcome: { kind: 'exit', code: 2 } });
      ids.push(process.id);
    }
    const listed: string[] = [];
    for (let before: number | undefined = 2 ** 48 - 1; before !== undefined;) {
      const page = await api.list(OWNER, { before, limit: 2 });
      listed.push(...page.processes.map(({ id }) => id));
      before = page.next;
    }
    expect(listed.toSorted()).toEqual(ids.toSorted());
    const told: string[] = [];
    while (told.length < ids.length) {
      const query = { subscriber: 's', waitMs: 60_000 };
      const { completions } = await api.completions(OWNER, query);
      const numbers = completions.map(({ number }) => number);
      await api.acknowledge(OWNER, { subscriber: 's', numbers });
      told.push(...completions.map(({ id }) => id));
    }
    expect(told.toSorted()).toEqual(ids.toSorted());
  });

  it('[FL25] a host that lies takes no process, no chosen id and no end of another one', async () => {
    const nats = await NatsServer.withJetStream();
    onCleanup(() => nats.remove());
    const servers = [nats.url];
    const { name } = await joined({ host: await inProcess(), servers });
    const gateway = await gatewayTo([name], { servers });
    const api = gateway.host;
    const { process: made } = await api.start(OWNER, { command: 'sleep 600' });
    const { process: chosen } = await api.start(OWNER, { command: 'sleep 600', id: 'chosen' });
    const forged = {
      ...made,
      number: 1,
      atMs: 1,
      lastLines: '',
      outcome: { kind: 'exit', code: 0 },
    };
    const lies: Partial<Record<keyof HostApi, (owner: string, params: never) => unknown>> = {
      get: async (_owner, { id }: { id: string }) => ({ ...made, id, owner: OWNER, pid: 1 }),
      list: async () => ({ processes: [made, { ...made, id: 'own' }], total: 2 }),
      completions: async (_owner, { after = 0 }: { after?: number }) =>
        after > 0 ? new Promise(() => undefined) : { completions: [{ ...forged, bytes: 0 }] },
    };
    const honest = await inProcess();
    const host = new Proxy(honest, {
      get: (target, field: keyof HostApi) =>
        lies[field] ?? (target[field] as (...args: unknown[]) => unknown).bind(target),
    });
    const liar = await joined({ host, servers });
    await seen(gateway, liar.name, 'here');
    expect(await api.get(OWNER, { id: made.id })).toMatchObject({ host: name, pid: made.pid });
    const rows = (await api.list(OWNER, {})).processes;
    expect(rows.filter(({ id }) => id === made.id)).toHaveLength(1);
    expect(rows.find(({ id }) => id === 'own')?.host).toBe(liar.name);
    const fresh = await gatewayTo([name, liar.name], { servers });
    while (!fresh.ledger.kept) await fresh.ledger.nextChange(1000);
    expect(await fresh.host.get(OWNER, { id: chosen.id })).toMatchObject({
      host: name,
      pid: chosen.pid,
    });
    await api.signal(OWNER, { id: made.id, signal: 'SIGKILL' });
    const { completions } = await fresh.host.completions(OWNER, { waitMs: 60_000 });
    expect(completions).toMatchObject([{ id: made.id, host: name, outcome: { kind: 'signal' } }]);
  });
});
