// Streams of the native dialect over real sockets: nothing twice and nothing missing however the connection is cut, a
// bounded cost for readers that are slow, and nobody left waiting when a client has gone.
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { HostApi, Missed } from '../../src/protocol/host-api.ts';
import { Metrics } from '../../src/server/telemetry/metrics.ts';
import { nativeRoutes } from '../../src/server/native/routes.ts';
import type { NativeEvent } from '../../src/server/native/events.ts';
import { Terminals } from '../../src/terminals/terminals.ts';
import { PageSessions } from '../../src/server/dashboard/page-sessions.ts';
import { Tokens } from '../../src/server/http/tokens.ts';
import { UnreadAnswers } from '../../src/server/http/unread-answers.ts';
import { StartRate } from '../../src/server/start-rate.ts';
import { openDoor, serve, type Served } from '../support/coder-client.ts';
import { eventData, NativeClient, outputOf, type Frame } from '../support/native-client.ts';
import { SEED, seeded } from '../support/random.ts';

let served: Served;
let client: NativeClient;

beforeAll(async () => {
  served = await serve({ heartbeatMs: 40 });
  client = NativeClient.of(served);
});

afterAll(() => served.stop());

const isEnd = ({ event }: Frame): boolean => event === 'end';
const has =
  (name: string) =>
  (frames: readonly Frame[]): boolean =>
    frames.some(({ event }) => event === name);
const hasComments = (frames: readonly Frame[]): boolean =>
  frames.filter(({ comment }) => comment).length >= 3;

/** Asks until this many callers are parked. */
async function parked(count: number): Promise<void> {
  for (;;) {
    const { json } = await client.get('/v1/health');
    if ((json as { parkedWaits: number }).parkedWaits === count) return;
  }
}

/** Time for the server: whatever it would push to a reader that does not read, it pushes meanwhile. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await client.get('/v1/health');
}

/** Reads on with Last-Event-ID after every cut, and keeps what arrived whole. */
async function followThroughCuts(path: string, random: () => number): Promise<Frame[]> {
  const frames: Frame[] = [];
  for (;;) {
    const id = frames.findLast((frame) => frame.id !== undefined)?.id;
    const budget = Math.floor(random() ** 3 * 20_000);
    const got = await client.frames(path, {
      budget,
      until: has('end'),
      ...(id !== undefined && { headers: { 'last-event-id': id } }),
    });
    frames.push(...got);
    if (got.some(isEnd)) return frames;
  }
}

function routesOf({ server: { host }, home }: Served): ReturnType<typeof nativeRoutes> {
  const clock = systemClock;
  return nativeRoutes({
    host,
    maxBodyBytes: 1024,
    metrics: new Metrics(),
    clock,
    startRate: new StartRate(clock),
    pages: new PageSessions(home, clock),
    tokens: new Tokens(home, clock),
    bearer: () => undefined,
    terminals: new Terminals(host, clock, home),
    shell: '/bin/sh',
  });
}

describe('following a process', () => {
  it('[API20] one event per event of the journal, its number as id, and an end', async () => {
    const id = await client.run({ command: "printf 'straße\\n\\377'; exit 9" });
    const frames = await client.frames(`/v1/processes/${id}/follow`);
    const events = eventData(frames);
    expect(events.map(({ kind }) => kind)).toEqual(['started', 'output', 'exited', 'closed']);
    expect(frames.filter((frame) => frame.id !== undefined).map((frame) => frame.id)).toEqual(
      events.map(({ seq }) => String(seq)),
    );
    expect(frames.at(-1)).toEqual({
      event: 'end',
      data: { state: 'closed', outcome: { kind: 'exit', code: 9 } },
    });
    const { json } = await client.get(`/v1/processes/${id}/events`);
    expect(events).toEqual((json as { events: NativeEvent[] }).events);
    const later = await client.frames(`/v1/processes/${id}/follow?after=2`);
    expect(eventData(later).map(({ seq }) => seq)).toEqual([3, 4]);
    const both = await client.frames(`/v1/processes/${id}/follow?after=1`, {
      headers: { 'last-event-id': '3' },
    });
    expect(eventData(both).map(({ seq }) => seq)).toEqual([4]);
  });

  it('[API21] connections cut at random bytes cost no event and repeat none', async () => {
    const command =
      "for i in $(seq 400); do echo out $i ä; printf 'err %s\\377\\n' $i >&2; done; sleep 0.1; echo last";
    const { id } = await client.start({ command, streams: 'separate' });
    const readers = Array.from({ length: 8 }, async (_each, index) => {
      const frames = await followThroughCuts(`/v1/processes/${id}/follow`, seeded(SEED + index));
      const events = eventData(frames);
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, at) => at + 1));
      return events;
    });
    const [first, ...others] = await Promise.all(readers);
    const { bytes } = await client.get(`/v1/processes/${id}/bytes`);
    expect(outputOf(first ?? []).equals(bytes)).toBe(true);
    expect(bytes.toString()).toContain('last\n');
    for (const other of others) expect(other).toEqual(first);
  });

  it('[API21] a follower goes on after the server was replaced', async () => {
    const own = await serve();
    const { home } = own;
    const before = NativeClient.of(own);
    const { id } = await before.start({ command: 'echo one; read line; echo two', stdin: 'pipe' });
    const path = `/v1/processes/${id}/follow`;
    const first = await before.frames(path, { until: has('output') });
    await own.server.close();
    const next = await serve({ home });
    try {
      const after = NativeClient.of(next);
      await after.post(`/v1/processes/${id}/stdin`, { text: '\n' });
      const last = first.findLast((frame) => frame.id !== undefined)?.id ?? '';
      const rest = await after.frames(path, { headers: { 'last-event-id': last } });
      const events = eventData([...first, ...rest]);
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, at) => at + 1));
      expect(outputOf(events).toString()).toBe('one\ntwo\n');
    } finally {
      await next.stop();
    }
  });

  it('[SV31] a token that leaves too much unread gets no further large answer, but small ones', async () => {
    const unread = new UnreadAnswers({ perToken: 100 });
    const { port } = await openDoor(routesOf(served), { unread });
    const reader = new NativeClient({ host: '127.0.0.1', port }, { authorization: 'Bearer full' });
    const { id } = await client.start({ command: 'echo words' });
    await client.post(`/v1/processes/${id}/wait`, { for: [{ kind: 'closed' }] });
    const large = ['text?maxBytes=1000000', 'bytes?maxBytes=1000000', 'events?maxBytes=1000000'];
    const statuses = async (): Promise<number[]> => {
      const paths = [...large, 'text', 'events'].map((path) => `/v1/processes/${id}/${path}`);
      return Promise.all(paths.map(async (path) => (await reader.get(path)).status));
    };
    const terminal = async (): Promise<number> =>
      (await reader.get(`/v1/terminals/${id}/snapshot`)).status;
    const free = unread.take('admin', 60);
    expect(await statuses()).toEqual([429, 429, 429, 200, 200]);
    expect(await terminal()).toBe(429);
    free();
    expect(await statuses()).toEqual([200, 200, 200, 200, 200]);
    expect(await terminal()).not.toBe(429);
  });

  it('[API22] a reader that does not read costs a page, not the output, and then gets it all', async () => {
    const bytes = 48_000_000;
    const routes = routesOf(served);
    const { door, port } = await openDoor(routes);
    const sockets: Socket[] = [];
    door.on('connection', (socket: Socket) => sockets.push(socket));
    const reader = new NativeClient({ host: '127.0.0.1', port }, { authorization: 'Bearer full' });
    const { id } = await client.start({ command: `yes 0123456789abcdef | head -c ${bytes}` });
    const response = await reader.open('GET', `/v1/processes/${id}/follow`);
    response.pause();
    await client.post(`/v1/processes/${id}/wait`, { for: [{ kind: 'closed' }] });
    await turns(200);
    expect(sockets).toHaveLength(1);
    expect(sockets[0]?.writableLength).toBeGreaterThan(0);
    expect(sockets[0]?.writableLength).toBeLessThan(1_000_000);
    let output = 0;
    let last = 0;
    let text = '';
    for await (const chunk of response as AsyncIterable<Buffer>) {
      text += chunk.toString('latin1');
      const frames = text.split('\n\n');
      text = frames.pop() ?? '';
      for (const frame of frames) {
        const data = /^data: (.*)$/m.exec(frame)?.[1];
        if (!frame.startsWith('id: ') || data === undefined) continue;
        const event = JSON.parse(data) as NativeEvent;
        expect(event.seq).toBe(last + 1);
        last = event.seq;
        if (event.kind === 'output') output += event.text?.length ?? 0;
      }
    }
    expect(output).toBe(bytes);
  });

  it('[API23] silence is bridged by comments', async () => {
    const { id } = await client.start({ argv: ['sleep', '600'] });
    const frames = await client.frames(`/v1/processes/${id}/follow`, { until: hasComments });
    expect(eventData(frames).map(({ kind }) => kind)).toEqual(['started']);
  });

  it('[API30] a process that is removed meanwhile ends the stream with the problem', async () => {
    const mine = client.with({ 'holdfast-owner': 'remover' });
    const { id } = await mine.start({ command: 'yes 0123456789abcdef | head -c 20000000' });
    const response = await mine.open('GET', `/v1/processes/${id}/follow`);
    response.pause();
    await mine.get('/v1/completions?waitMs=60000');
    await turns(100);
    expect((await mine.delete(`/v1/processes/${id}`)).status).toBe(200);
    let tail = '';
    for await (const chunk of response as AsyncIterable<Buffer>)
      tail = (tail + chunk.toString('latin1')).slice(-1000);
    expect(tail).toMatch(/\n\nevent: problem\ndata: \{"error":\{"code":"not_found",.*\}\}\n\n$/);
  });

  it('[API24] output that is no longer stored is reported with its size, when following and downloading', async () => {
    const limits = { journalBytes: 400_000, journalHeadBytes: 100_000 };
    const small = await serve({
      keeperArgs: ['--idle-ms', '60000', '--limits', JSON.stringify(limits)],
    });
    try {
      const reader = NativeClient.of(small);
      const id = await reader.run({ command: 'yes 0123456789abcdef | head -c 6000000' });
      const path = `/v1/processes/${id}/follow`;
      const frames = await reader.frames(path);
      const reported = frames.filter(({ event }) => event === 'missed');
      const missed = reported.map(({ data }) => data as unknown as Missed);
      const events = eventData(frames);
      const lost = missed.reduce((total, each) => total + each.bytes, 0);
      expect(lost).toBeGreaterThan(5_000_000);
      expect(outputOf(events).length + lost).toBe(6_000_000);
      // Numbers go on without a hole where the missing ones are named.
      let next = 1;
      for (const { event, data } of frames.slice(1)) {
        if (event === 'end') break;
        const { fromSeq, toSeq, seq } = data as unknown as Missed & { seq: number };
        expect(event === 'missed' ? fromSeq : seq).toBe(next);
        next = (event === 'missed' ? toSeq : seq) + 1;
      }
      // Cut behind the notice: it is not sent again.
      const resumed = await reader.frames(path, {
        headers: { 'last-event-id': reported[0]?.id ?? '' },
      });
      expect(resumed.filter(({ event }) => event === 'missed')).toEqual(reported.slice(1));
      const { bytes, headers, trailers } = await reader.get(`/v1/processes/${id}/bytes`);
      expect(bytes.equals(outputOf(events))).toBe(true);
      expect(headers['holdfast-missed-bytes']).toBe(String(lost));
      expect(trailers['holdfast-skipped-bytes']).toBe(String(lost));
    } finally {
      await small.stop();
    }
  });
});

describe('following completions', () => {
  it('[API25] each completion comes once per connection, and again until it is acknowledged', async () => {
    const mine = client.with({ 'holdfast-owner': 'follower' });
    const path = '/v1/completions/follow?subscriber=s';
    const completions = (frames: readonly Frame[]): Frame[] =>
      frames.filter(({ event }) => event === 'completion');
    const following = mine.frames(path, { until: (frames) => completions(frames).length === 3 });
    const ids = [];
    for (let index = 0; index < 3; index += 1) ids.push(await mine.run({ command: 'true' }));
    const reported = completions(await following);
    const idsOf = (frames: readonly Frame[]): string[] =>
      completions(frames).map(({ data }) => (data as unknown as { id: string }).id);
    expect(idsOf(reported)).toEqual(ids);
    const hasThird = (frames: readonly Frame[]): boolean =>
      frames.some(({ id }) => id !== undefined && id === reported[2]?.id);
    expect(idsOf(await mine.frames(path, { until: hasThird }))).toEqual(ids);
    const resumed = await mine.frames(path, {
      headers: { 'last-event-id': reported[0]?.id ?? '' },
      until: hasThird,
    });
    expect(idsOf(resumed)).toEqual(ids.slice(1));
    const numbers = reported.slice(0, 2).map(({ id }) => Number(id));
    await mine.post('/v1/completions/acknowledge', { subscriber: 's', numbers });
    expect(idsOf(await mine.frames(path, { until: hasThird }))).toEqual(ids.slice(2));
  });

  it('[SV16] nobody asks again and again: while something is unacknowledged the host is asked once per end', async () => {
    const mine = client.with({ 'holdfast-owner': 'watcher' });
    await mine.run({ command: 'true' });
    // Followers of the test before may not have been missed yet.
    await parked(0);
    let asked = 0;
    const { host } = served.server;
    const counting: HostApi = {
      ...host,
      completions: (...args) => {
        asked += 1;
        return host.completions(...args);
      },
    };
    const clock = systemClock;
    const terminals = new Terminals(host, clock, served.home);
    const routes = nativeRoutes({
      host: counting,
      terminals,
      shell: '/bin/sh',
      maxBodyBytes: 1024,
      metrics: new Metrics(),
      clock,
      startRate: new StartRate(clock),
      pages: new PageSessions(served.home, clock),
      tokens: new Tokens(served.home, clock),
      bearer: () => undefined,
    });
    const { port } = await openDoor(routes);
    const watcher = new NativeClient(
      { host: '127.0.0.1', port },
      { authorization: 'Bearer full', 'holdfast-owner': 'watcher' },
    );
    const ends = (frames: readonly Frame[]): number =>
      frames.filter(({ event }) => event === 'completion').length;
    const following = watcher.frames('/v1/completions/follow', {
      until: (frames) => ends(frames) === 2,
    });
    await parked(1);
    expect(asked).toBe(2);
    await mine.run({ command: 'true' });
    await following;
    expect(asked).toBeLessThanOrEqual(3);
    await parked(0);
  });

  it('[API23] silence is bridged by comments there too, with and without something unacknowledged', async () => {
    for (const owner of ['nobody-yet', 'follower']) {
      const frames = await client
        .with({ 'holdfast-owner': owner })
        .frames('/v1/completions/follow?subscriber=quiet', { until: hasComments });
      expect(frames.some(({ comment }) => comment)).toBe(true);
    }
  });
});

describe('clients that go away', () => {
  it('[API26] a client that goes away leaves no parked wait, and its process goes on', async () => {
    const { id } = await client.start({ argv: ['sleep', '600'] });
    await parked(0);
    const wait = JSON.stringify({ for: [{ kind: 'exit' }] });
    const waits = JSON.stringify({ waits: [{ id, for: [{ kind: 'closed' }] }] });
    const calls: [string, string, string?][] = [
      ['POST', `/v1/processes/${id}/wait`, wait],
      ['POST', '/v1/wait', waits],
      ['GET', `/v1/processes/${id}/events?after=1&waitMs=3600000`],
      ['GET', '/v1/completions?subscriber=none&waitMs=3600000&owner=nobody'],
    ];
    const sent = calls.map(([method, path, body]) => {
      const headers = {
        authorization: `Bearer ${served.token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      };
      const call = request({ host: '127.0.0.1', port: served.port, method, path, headers });
      call.on('error', () => undefined);
      call.end(body);
      return call;
    });
    await parked(calls.length);
    for (const call of sent) call.destroy();
    await parked(0);
    expect((await client.get(`/v1/processes/${id}`)).json).toMatchObject({ state: 'running' });
  });

  it('[API26] followers that go away leave nothing either', async () => {
    const { id } = await client.start({ argv: ['sleep', '600'] });
    const open = await Promise.all(
      Array.from({ length: 20 }, () => client.open('GET', `/v1/processes/${id}/follow`)),
    );
    await parked(20);
    for (const response of open) response.destroy();
    await parked(0);
    expect(served.reports).toEqual([]);
  });
});
