// What a fleet does when a link freezes, a server of a host dies, or NATS is away.

import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { Fabric, type Heard } from '../../src/fleet/wire/fabric.ts';
import {
  decodeMessage,
  encodeMessage,
  readBeat,
  type Ask,
  type HostAnswer,
} from '../../src/fleet/wire/messages.ts';
import { subjects } from '../../src/fleet/wire/subjects.ts';
import type { HostApi } from '../../src/protocol/host-api.ts';
import { operationNames } from '../../src/protocol/operation-names.ts';
import { Joiner } from '../../src/fleet/member/joiner.ts';
import { fleetOf, frozenLink, gatewayTo, joined, seen, uniqueName } from '../support/fleet.ts';
import { failure, inProcess, onCleanup, OWNER, startProcess, waitFor } from '../support/hosts.ts';
import { hasNats, LEFT_OUT, NatsServer, sharedNats } from '../support/nats.ts';

const exit = { kind: 'exit' } as const;
const quiet = (): void => undefined;

/** A gateway by hand: it sends what it likes, and shows what comes back. */
async function rawGateway(host: string): Promise<{
  readonly boot: string;
  readonly nowMs: number;
  ask(number: number, ask: Partial<Ask>): void;
  again(number: number): void;
  next(): Promise<[number, HostAnswer]>;
}> {
  const name = uniqueName('g');
  const { url } = await sharedNats();
  const fabric = new Fabric({ name, servers: [url], clock: systemClock, report: quiet });
  onCleanup(() => fabric.close());
  const heard: Heard[] = [];
  const waiting: (() => void)[] = [];
  const note = (message: Heard): void => {
    heard.push(message);
    for (const wake of waiting.splice(0)) wake();
  };
  let beat: ReturnType<typeof readBeat>;
  const here = new Promise<void>((resolve) => {
    fabric.subscribe(subjects.up(host, 'beat'), ({ bytes }) => {
      beat = readBeat(bytes);
      resolve();
    });
  });
  fabric.subscribe(subjects.answersTo(name, 'control'), note);
  fabric.onUp(() => fabric.publish(subjects.rollCall, Buffer.alloc(0)));
  await here;
  const { boot = '', nowMs = 0 } = beat ?? {};
  const reply = (number: number): string => subjects.answer(name, host, 'control', number);
  return {
    boot,
    nowMs,
    ask: (number, given) => {
      const ask = {
        op: 'health',
        owner: OWNER,
        params: {},
        boot,
        untilMs: nowMs + 60_000,
      } as const;
      const bytes = Buffer.concat(encodeMessage({ ...ask, ...given }));
      fabric.publish(subjects.asks(host), bytes, { reply: reply(number) });
    },
    again: (number) => {
      const bytes = Buffer.concat(encodeMessage({ again: true }));
      fabric.publish(subjects.notes(host), bytes, { reply: reply(number) });
    },
    next: async () => {
      while (heard.length === 0) await new Promise<void>((resolve) => waiting.push(resolve));
      const { subject, bytes } = heard.shift() as Heard;
      return [Number(subject.split('.').at(-1)), decodeMessage(bytes) as HostAnswer];
    },
  };
}

/** Its operations, for a host that does some of them in another way. */
function bound(host: HostApi): HostApi {
  const own = operationNames.map((name) => [name, host[name].bind(host)]);
  return { ...(Object.fromEntries(own) as HostApi), close: () => host.close() };
}

describe.skipIf(!hasNats)(`a request${LEFT_OUT}`, () => {
  it('[FL20] one that comes too late, or for an earlier server, is not carried out', async () => {
    const host = await inProcess();
    const { name } = await joined({ host });
    const raw = await rawGateway(name);
    const { boot } = raw;
    const start = { op: 'start', params: { command: 'true', id: 'late' } } as const;
    raw.ask(1, { ...start, untilMs: raw.nowMs - 1 });
    expect(await raw.next()).toEqual([1, { late: true, boot }]);
    raw.ask(2, { ...start, boot: 'before' });
    expect(await raw.next()).toEqual([2, { late: true, boot }]);
    expect((await host.list(OWNER, {})).total).toBe(0);
    raw.ask(3, start);
    expect(await raw.next()).toMatchObject([3, { result: { attached: false } }]);
  });

  it('[FL21] one runs once, however often it is asked for; its answer is kept for who did not get it', async () => {
    const host = await inProcess();
    const { name } = await joined({ host });
    const raw = await rawGateway(name);
    const { boot } = raw;
    const start = { op: 'start', params: { command: 'true' } } as const;
    raw.ask(7, start);
    raw.ask(7, start);
    const [, first] = await raw.next();
    raw.ask(7, start);
    raw.again(7);
    expect(await raw.next()).toEqual([7, first]);
    expect(await raw.next()).toEqual([7, first]);
    expect((await host.list(OWNER, {})).total).toBe(1);
    raw.again(8);
    expect(await raw.next()).toEqual([8, { unknown: true, boot, done: false }]);
    raw.ask(9, { op: 'nothing' as never });
    expect(await raw.next()).toMatchObject([9, { error: { code: 'unsupported' } }]);
  });
});

describe.skipIf(!hasNats)(`a host${LEFT_OUT}`, () => {
  it('[FL22] whose link freezes is silent: lists name it, calls are refused, waits go on, nothing of it is touched', async () => {
    const nats = await sharedNats();
    const link = await frozenLink(nats.port);
    const far = await joined({ host: await inProcess(), servers: [link.url], onlyGiven: true });
    const near = await joined({ host: await inProcess() });
    const gateway = await gatewayTo([far.name, near.name]);
    const api = gateway.host;
    const on = (name: string) => ({ command: 'read _; exit 5', labels: { 'host.name': name } });
    const id = await startProcess(api, { ...on(far.name), stdin: 'pipe' });
    await startProcess(api, { ...on(near.name), stdin: 'pipe' });
    const waited = waitFor(api, id, exit);
    link.freeze();
    await seen(gateway, far.name, 'silent');
    expect(await api.list(OWNER, {})).toMatchObject({ total: 1, incomplete: [far.name] });
    const refused = await failure(api.signal(OWNER, { id, signal: 'SIGKILL' }));
    expect(refused).toMatchObject({ code: 'host_unreachable', details: { host: far.name } });
    expect((await failure(api.start(OWNER, { command: 'true', key: 'k' }))).code).toBe(
      'host_unreachable',
    );
    expect((await far.host.get(OWNER, { id })).state).toBe('running');
    link.thaw();
    await seen(gateway, far.name, 'here');
    expect((await api.get(OWNER, { id })).state).toBe('running');
    await api.write(OWNER, { id, data: Buffer.from('\n') });
    expect((await waited).process.outcome).toEqual({ kind: 'exit', code: 5 });
  });

  it('[FL23] whose server is replaced is asked again for what it waited for, and not for what it may have done', async () => {
    const host = await inProcess();
    const { name, joiner } = await joined({ host });
    const gateway = await gatewayTo([name]);
    const api = gateway.host;
    const id = await startProcess(api, { command: 'read _; exit 6', stdin: 'pipe' });
    const stubborn = await startProcess(api, {
      command: 'trap "" TERM; echo on; sleep 600; sleep 600',
    });
    await waitFor(api, stubborn, { kind: 'text', text: 'on' });
    const waits = Promise.all([waitFor(api, id, exit), api.text(OWNER, { id, waitMs: 60_000 })]);
    const terminate = { signal: 'terminate', graceMs: 600_000 };
    const ending = failure(api.signal(OWNER, { id: stubborn, ...terminate }));
    while (joiner.underWay < 3) await api.get(OWNER, { id });
    // The server dies without a word: its connection closes, and another one takes its name.
    const fabric = (joiner as unknown as { fabric: Fabric }).fabric;
    await fabric.close();
    await seen(gateway, name, 'cut');
    expect(await ending).toMatchObject({ code: 'host_unreachable', details: { unclear: true } });
    expect((await failure(api.get(OWNER, { id }))).message).toContain('disconnected since');
    await joined({ host, name });
    await seen(gateway, name, 'here');
    await api.write(OWNER, { id, data: Buffer.from('\n') });
    const [met, text] = await waits;
    expect(met.process.outcome).toEqual({ kind: 'exit', code: 6 });
    expect(text.process.outcome).toEqual({ kind: 'exit', code: 6 });
    await api.signal(OWNER, { id: stubborn, signal: 'SIGKILL' });
  });

  it('[FL24] works by itself while NATS is away, and is back with its waits when NATS is', async () => {
    const nats = await NatsServer.start();
    onCleanup(() => nats.remove());
    const servers = [nats.url];
    const { hosts } = await fleetOf();
    expect(hosts).toEqual([]);
    const host = await inProcess();
    const { name } = await joined({ host, servers });
    const gateway = await gatewayTo([name], { servers });
    const api = gateway.host;
    const id = await startProcess(api, { command: 'read _; exit 7', stdin: 'pipe' });
    const waited = waitFor(api, id, exit);
    await nats.kill();
    const problem = async (): Promise<string> => (await failure(api.get(OWNER, { id }))).code;
    while ((await problem()) !== 'fabric_degraded') continue;
    expect((await host.get(OWNER, { id })).state).toBe('running');
    await nats.run();
    await gateway.up();
    await seen(gateway, name, 'here');
    await host.write(OWNER, { id, data: Buffer.from('\n') });
    expect((await waited).process.outcome).toEqual({ kind: 'exit', code: 7 });
  });

  it('[FL25] one that lies says only of itself: beats that are none are ignored', async () => {
    const { url } = await sharedNats();
    const gateway = await gatewayTo([]);
    const fabric = new Fabric({ name: 'liar', servers: [url], clock: systemClock, report: quiet });
    onCleanup(() => fabric.close());
    await new Promise<void>((resolve) => fabric.onUp(resolve));
    for (const text of [
      '',
      'null',
      '{}',
      '{"v":1}',
      `{"v":1,"tag":"../../x"}`,
      'x'.repeat(100_000),
    ])
      fabric.publish(subjects.up('liar', 'beat'), Buffer.from(text));
    const { name } = await joined({ host: await inProcess() });
    await seen(gateway, name, 'here');
    expect(gateway.hosts().map((known) => known.name)).toEqual([name]);
  });

  it('[FL25] one that answers waits at once, or one page for ever, does not keep a gateway busy', async () => {
    const honest = await inProcess();
    const counts = { completions: 0, changes: 0 };
    const row = { id: 'x', owner: OWNER, number: 1, atMs: 1, command: '' };
    const host = {
      ...bound(await inProcess()),
      completions: async () => {
        counts.completions += 1;
        return { completions: Array.from({ length: 1000 }, () => row) as never };
      },
      changes: async () => {
        counts.changes += 1;
        return { epoch: 'e', version: 1, reset: false, more: false, changed: [], removed: [] };
      },
    };
    const [liar, other] = [await joined({ host }), await joined({ host: honest })];
    const { host: api } = await gatewayTo([liar.name, other.name]);
    const { completions } = await api.completions(OWNER, {});
    const after = completions.at(-1)?.number;
    expect(counts.completions).toBeLessThan(10);
    const { epoch, version } = await api.changes(OWNER, {});
    Object.assign(counts, { completions: 0, changes: 0 });
    const [none] = await Promise.all([
      api.completions(OWNER, { waitMs: 1000, after }),
      api.changes(OWNER, { waitMs: 1000, epoch, after: version }),
    ]);
    expect(none).toEqual({ completions: [] });
    expect(counts.completions).toBeLessThan(20);
    expect(counts.changes).toBeLessThan(20);
    const ended = api.completions(OWNER, { waitMs: 60_000, after });
    await honest.start(OWNER, { command: 'exit 3' });
    expect((await ended).completions).toMatchObject([{ outcome: { kind: 'exit', code: 3 } }]);
  });

  it('[FL26] its beat does not wait for requests, and asking about nothing leaves nothing behind', async () => {
    const host = await inProcess();
    const { name, joiner } = await joined({ host });
    expect(joiner).toBeInstanceOf(Joiner);
    const gateway = await gatewayTo([name]);
    const id = await startProcess(gateway.host, { command: 'sleep 600' });
    const stop = new AbortController();
    const waits = Array.from({ length: 50 }, () =>
      gateway.host.wait(OWNER, { waits: [{ id, for: [exit] }] }, stop.signal),
    );
    while (joiner.underWay < 50) await gateway.host.get(OWNER, { id });
    stop.abort();
    for (const wait of await Promise.allSettled(waits))
      expect(wait).toMatchObject({ status: 'rejected', reason: { code: 'aborted' } });
    while (joiner.underWay > 0) await gateway.host.get(OWNER, { id });
    expect((await host.health()).parkedWaits).toBe(0);
    expect(gateway.underWay).toBe(0);
  });
});
