// The ledger of a fleet over a real JetStream: each end is told once and in order, whatever dies meanwhile.

import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { forgetHost } from '../../src/fleet/ledger/forget-host.ts';
import type { LedgerWriter } from '../../src/fleet/ledger/ledger-writer.ts';
import type { Gateway } from '../../src/fleet/gateway/gateway.ts';
import { HoldfastError } from '../../src/protocol/errors.ts';
import type { Completion, HostApi } from '../../src/protocol/host-api.ts';
import type { StartSpec } from '../../src/protocol/operations.ts';
import type { ProcessInfo } from '../../src/protocol/process.ts';
import { frozenLink, gatewayTo, joined, seen, written } from '../support/fleet.ts';
import { failure, inProcess, onCleanup, OWNER, startProcess } from '../support/hosts.ts';
import { isSlowRun } from '../support/slow.ts';
import { hasNats, LEFT_OUT, NatsServer } from '../support/nats.ts';

const subscriber = 'tests';
const LONG_MS = 900_000;
/** `npm run test:fleet` and `npm run test:slow` */
const isLong = isSlowRun || process.env['FLEET'] !== undefined;
const long = (short: number, whole: number): number => (isLong ? whole : short);

async function jetStream(): Promise<NatsServer> {
  const nats = await NatsServer.withJetStream();
  onCleanup(() => nats.remove());
  return nats;
}

/** As a caller does: an answer that says that JetStream does not answer now is asked for again. */
async function patiently<T>(act: () => Promise<T>): Promise<{ result: T; repeats: number }> {
  for (let repeats = 0; ; repeats += 1) {
    try {
      return { result: await act(), repeats };
    } catch (error) {
      if (!(error instanceof HoldfastError) || error.code !== 'fabric_degraded') throw error;
    }
  }
}

/** Takes and acknowledges until this number of completions has come. */
async function take(api: HostApi, count: number): Promise<Completion[]> {
  const taken: Completion[] = [];
  while (taken.length < count) {
    const asked = await patiently(() => api.completions(OWNER, { subscriber, waitMs: 60_000 }));
    const { completions } = asked.result;
    const numbers = completions.map(({ number }) => number);
    const { result, repeats } = await patiently(() =>
      api.acknowledge(OWNER, { subscriber, numbers }),
    );
    // One that was in doubt may have been stored before it was repeated.
    if (repeats === 0) expect(result.acknowledged).toBe(numbers.length);
    taken.push(...completions);
  }
  return taken;
}

function names(completions: readonly Completion[]): string[] {
  return completions.map(({ name = '' }) => name);
}

/** Two hosts and a gateway whose ledger is open. */
async function pairOn(servers: readonly string[]) {
  const hosts = [
    await joined({ host: await inProcess(), servers }),
    await joined({ host: await inProcess(), servers }),
  ];
  const gateway = await gatewayTo(
    hosts.map(({ name }) => name),
    { servers },
  );
  while (gateway.ledger.state !== 'open') await gateway.ledger.nextChange(1000);
  return { hosts, gateway, api: gateway.host };
}

describe.skipIf(!hasNats)(`the ledger${LEFT_OUT}`, () => {
  it('[FL50] each end is told with every ask, in one order at every gateway, until it is acknowledged', async () => {
    const servers = [(await jetStream()).url];
    const hosts = [
      await joined({ host: await inProcess(), servers }),
      await joined({ host: await inProcess(), servers }),
    ];
    const all = hosts.map(({ name }) => name);
    const one = (await gatewayTo(all, { servers })).host;
    const other = (await gatewayTo(all, { servers })).host;
    const waiting = one.completions(OWNER, { subscriber, waitMs: 60_000 });
    for (const { host } of hosts) await startProcess(host, { command: 'exit 4', name: 'early' });
    expect((await waiting).completions[0]).toMatchObject({ outcome: { kind: 'exit', code: 4 } });
    const first = await take(one, 2);
    expect(first.map(({ number }) => number)).toEqual(
      first.map(({ number }) => number).toSorted((a, b) => a - b),
    );
    expect((await other.completions(OWNER, { subscriber })).completions).toEqual([]);
    const again = await other.completions(OWNER, { subscriber: 'late' });
    expect(again.completions).toEqual(first);
    const rest = await other.completions('*', { after: first[0]?.number });
    expect(rest.completions).toEqual(first.slice(1));
    expect((await other.completions('nobody', {})).completions).toEqual([]);
  });

  it('[FL60] without JetStream a gateway says what the fleet lacks, and tells the ends that the hosts have', async () => {
    const { host, name } = await joined({ host: await inProcess() });
    const reports: string[] = [];
    const gateway = await gatewayTo([name], { report: (text) => void reports.push(text) });
    await startMany(host, 'e', 2);
    const ends = await take(gateway.host, 2);
    expect(names(ends)).toEqual(['e0', 'e1']);
    expect(ends.every(({ number }) => number % 2 === 1)).toBe(true);
    expect(gateway.ledger.state).toBe('none');
    expect(reports.join()).toContain('NATS has no JetStream, so the fleet has no ledger');
  });

  it(
    '[FL51] what ends while the leader of the ledger is killed is told once and in order',
    async () => {
      const cluster = await NatsServer.cluster();
      for (const node of cluster) onCleanup(() => node.remove());
      const servers = cluster.map(({ url }) => url);
      const { name, host } = await joined({ host: await inProcess(), servers });
      const api = (await gatewayTo([name], { servers })).host;
      const kills = long(1, 20);
      const each = long(30, 100);
      const told: Completion[] = [];
      for (let kill = 0; kill < kills; kill += 1) {
        const started = startMany(host, `k${kill}-`, each);
        told.push(...(await take(api, 1)));
        const leader = await leaderOf(cluster);
        await leader.kill();
        await started;
        while (told.length < (kill + 1) * each) told.push(...(await take(api, 1)));
        await leader.run();
      }
      expect(names(told)).toEqual(
        Array.from({ length: kills }, (_, kill) => numbered(`k${kill}-`, each)).flat(),
      );
      const { completions } = await api.completions(OWNER, { subscriber });
      expect(completions).toEqual([]);
    },
    LONG_MS,
  );

  it(
    '[FL52] what ends while the link of a host is frozen is told once and in order afterwards',
    async () => {
      const nats = await jetStream();
      const link = await frozenLink(nats.port);
      const { name, host } = await joined({
        host: await inProcess(),
        servers: [link.url],
        onlyGiven: true,
      });
      const gateway = await gatewayTo([name], { servers: [nats.url] });
      const api = gateway.host;
      const count = long(200, 3000);
      const half = startMany(host, 'p', count);
      const told = await take(api, 1);
      link.freeze();
      await seen(gateway, name, 'silent');
      await half;
      link.thaw();
      while (told.length < count) told.push(...(await take(api, 1)));
      expect(names(told)).toEqual(numbered('p', count));
    },
    LONG_MS,
  );

  it('[FL53] a ledger whose data are lost is made anew, and told what the hosts still have', async () => {
    const nats = await jetStream();
    const servers = [nats.url];
    const { name, host } = await joined({ host: await inProcess(), servers });
    const gateway = await gatewayTo([name], { servers });
    const api = gateway.host;
    await startMany(host, 'a', 3);
    const before = await take(api, 3);
    await nats.kill();
    nats.loseData();
    await startMany(host, 'b', 3);
    await nats.run();
    await gateway.up();
    const newest = before.at(-1)?.number;
    const after: Completion[] = [];
    while (after.length < 6) {
      const { number } = after.at(-1) ?? { number: newest };
      after.push(...(await api.completions(OWNER, { after: number, waitMs: 60_000 })).completions);
    }
    expect(names(after)).toEqual([...numbered('a', 3), ...numbered('b', 3)]);
  });

  it('[FL54] a server of a host that dies before the keeper knows what it told tells nothing twice', async () => {
    const servers = [(await jetStream()).url];
    const host = await inProcess();
    // The keeper never hears that the ledger has it.
    const deaf = new Proxy(host, {
      get: (target, field: keyof HostApi) =>
        field === 'acknowledge'
          ? () => new Promise(() => undefined)
          : (target[field] as (...args: unknown[]) => unknown).bind(target),
    });
    const first = await joined({ host: deaf, servers });
    const api = (await gatewayTo([first.name], { servers })).host;
    await startMany(host, 'x', 1);
    const told = await take(api, 1);
    await first.joiner.close();
    await joined({ host, servers, name: first.name });
    await startMany(host, 'y', 1);
    told.push(...(await take(api, 1)));
    expect(names(told)).toEqual(['x0', 'y0']);
  });

  it('[FL55] two gateways start one key, one chosen id and one workspace on one host', async () => {
    const servers = [(await jetStream()).url];
    const hosts = [
      await joined({ host: await inProcess(), servers }),
      await joined({ host: await inProcess(), servers }),
    ];
    const all = hosts.map(({ name }) => name);
    const gateways = [await gatewayTo(all, { servers }), await gatewayTo(all, { servers })];
    // Each gateway would choose another host.
    const starts = (given: Partial<StartSpec>, labels = {}) =>
      Promise.allSettled(
        gateways.map(({ host: api }, index) =>
          api.start(OWNER, {
            command: 'sleep 600',
            ...given,
            labels: { ...labels, 'host.name': all[index] ?? '' },
          }),
        ),
      );
    for (const name of numbered('n', 5)) {
      await starts({ key: name });
      await starts({ id: name });
      await starts({}, { workspace: name });
    }
    const { processes } = await (gateways[0] as Gateway).host.list(OWNER, {});
    const hostsOf = (filter: (process: ProcessInfo) => boolean): (string | undefined)[] =>
      processes.filter(filter).map(({ host }) => host);
    for (const name of numbered('n', 5)) {
      expect(hostsOf(({ key }) => key === name)).toHaveLength(1);
      expect(hostsOf(({ id }) => id === name)).toHaveLength(1);
      const [first, second, ...more] = hostsOf(({ labels }) => labels?.['workspace'] === name);
      expect([first === second, more]).toEqual([true, []]);
    }
  });

  it('[FL56] a claim of a host that has left is void', async () => {
    const servers = [(await jetStream()).url];
    const { hosts, gateway, api } = await pairOn(servers);
    const { process } = await api.start(OWNER, { command: 'sleep 600', key: 'k' });
    for (const { host } of hosts) await startMany(host, 'e', 1);
    await take(api, 2);
    const [holder, other] = hosts[0]?.name === process.host ? hosts : hosts.toReversed();
    await holder?.joiner.close({ leaves: true });
    await seen(gateway, holder?.name ?? '', 'gone');
    while (!gateway.ledger.departed.has(holder?.name ?? '')) await gateway.ledger.nextChange(1000);
    const again = await api.start(OWNER, { command: 'sleep 600', key: 'k' });
    expect([again.attached, again.process.host]).toEqual([false, other?.name]);
  });

  it.skipIf(!isLong)(
    '[FL57] with one of three servers nothing new gets a key, and everything else goes on',
    async () => {
      const cluster = await NatsServer.cluster();
      for (const node of cluster) onCleanup(() => node.remove());
      const { gateway, api, hosts } = await pairOn(cluster.map(({ url }) => url));
      const { process } = await api.start(OWNER, { command: 'sleep 600', key: 'k' });
      for (const node of cluster.slice(1)) await node.kill();
      await gateway.up();
      for (const { name } of hosts) await seen(gateway, name, 'here');
      const attached = await api.start(OWNER, { command: 'sleep 600', key: 'k' });
      expect(attached).toMatchObject({ attached: true, process: { id: process.id } });
      const refused = await failure(api.start(OWNER, { command: 'true', key: 'new' }));
      expect(refused.code).toBe('fabric_degraded');
      for (let count = 0; count < 20; count += 1) {
        const { process: free } = await api.start(OWNER, { command: 'true', waitMs: 60_000 });
        expect(free.outcome).toEqual({ kind: 'exit', code: 0 });
      }
    },
  );

  it('[FL58] what a host that never returns had begun is reported as lost, once, and not while it is there', async () => {
    const servers = [(await jetStream()).url];
    const { hosts, gateway, api } = await pairOn(servers);
    const [gone, other] = hosts as [(typeof hosts)[number], (typeof hosts)[number]];
    const on = (name: string) => ({ labels: { 'host.name': name } });
    await api.start(OWNER, { command: 'sleep 600', name: 'lives', ...on(other.name) });
    const { process } = await api.start(OWNER, {
      command: 'sleep 600',
      name: 'lost',
      key: 'k',
      ...on(gone.name),
    });
    const report = (): void => undefined;
    const forget = (): Promise<number> =>
      forgetHost({ name: 'f', servers, clock: systemClock, report }, gone.name);
    await written({ name: 'g', servers }, (entry) => entry.t === 'begun' && entry.name === 'lost');
    expect((await failure(forget())).code).toBe('still_running');
    await startMany(gone.host, 'ends', 2);
    const ends = await take(api, 2);
    // Its machine is gone without a word.
    const { fabric, ledger } = gone.joiner as unknown as Record<'fabric' | 'ledger', LedgerWriter>;
    await ledger.close();
    await fabric.close();
    await seen(gateway, gone.name, 'cut');
    // What nobody has claimed does not wait for it.
    const onward = { command: 'true', key: 'new', waitMs: 60_000 };
    expect((await api.start(OWNER, onward)).process.host).toBe(other.name);
    expect((await failure(api.start(OWNER, { command: 'true', key: 'k' }))).code).toBe(
      'host_unreachable',
    );
    expect(names(await take(api, 1))).toEqual(['']);
    expect(await forget()).toBe(1);
    expect(await forget()).toBe(0);
    await seen(gateway, gone.name, 'gone');
    ends.push(...(await take(api, 1)));
    expect(ends.map(({ name, outcome }) => [name, outcome])).toEqual([
      ['ends0', { kind: 'exit', code: 0 }],
      ['ends1', { kind: 'exit', code: 0 }],
      ['lost', { kind: 'lost', reason: 'host gone' }],
    ]);
    expect(ends[2]).toMatchObject({ id: process.id, owner: OWNER, command: 'sleep 600' });
    expect((await api.list(OWNER, {})).incomplete).toBeUndefined();
    const again = await api.start(OWNER, { command: 'sleep 600', key: 'k' });
    expect([again.attached, again.process.host]).toEqual([false, other.name]);
    expect(
      await failure(forgetHost({ name: 'f', servers, clock: systemClock, report }, 'h0')),
    ).toMatchObject({ code: 'not_found' });
  });
});

/** One after the other, each waited for: their ends are in order. */
async function startMany(host: HostApi, prefix: string, count: number): Promise<void> {
  for (const name of numbered(prefix, count))
    await host.start(OWNER, { command: 'true', name, waitMs: 60_000 });
}

function numbered(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${index}`);
}

/** The node that leads the stream of the ledger. */
async function leaderOf(cluster: readonly NatsServer[]): Promise<NatsServer> {
  const connection = await connect({ servers: cluster.map(({ url }) => url) });
  try {
    const manager = await jetstreamManager(connection, { checkAPI: false });
    const { cluster: group } = await manager.streams.info('HF_LEDGER');
    const index = Number(group?.leader?.slice(1));
    return cluster[index] as NatsServer;
  } finally {
    await connection.close();
  }
}
