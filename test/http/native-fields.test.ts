// Every field that a native operation accepts has an effect: a table with one case per field, complete by construction.
import { WebSocket } from 'ws';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ProcessInfo } from '../../src/protocol/process.ts';
import { nativeOperations, type NativeOperation } from '../../src/server/native/operations.ts';
import { serve, type Served } from '../support/coder-client.ts';
import { NativeClient } from '../support/native-client.ts';
import { isSlowRun } from '../support/slow.ts';

let served: Served;
let client: NativeClient;
/** Printed "one\n", "Two\n", "one three\n" and a colour, then exited. */
let ended: string;
/** `cat` on pipes, and a shell on a terminal; both run until the end of the tests. */
let cat: string;
let shell: string;

type Json = Readonly<Record<string, unknown>>;
type Effect = () => Promise<void>;
const get = async (path: string): Promise<Json> => (await client.get(path)).json;
const post = async (path: string, body: object): Promise<Json> =>
  (await client.post(path, body)).json;
/** The hits of a search over all processes. */
const searched = async (query: string): Promise<unknown> => {
  const response = await fetch(`${served.server.url}/v1/search?${query}`, {
    headers: { authorization: `Bearer ${served.token}` },
  });
  const lines = (await response.text()).trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as Json).filter(({ type }) => type === 'hits');
};
const size = { cols: 61, rows: 11 };
const BASH = { argv: ['/bin/bash', '--norc'], env: { PS1: '$ ', HOME: '/' } };

beforeAll(async () => {
  served = await serve();
  client = NativeClient.of(served);
  ended = await client.run({
    command: String.raw`printf 'one\n'; printf 'Two\n'; printf 'one three \033[31mred\033[0m\n'`,
  });
  cat = (await client.start({ command: 'cat', stdin: 'pipe', name: 'cat' })).id;
  const { process } = (await post('/v1/terminals', BASH)) as unknown as { process: ProcessInfo };
  shell = process.id;
  await post(`/v1/terminals/${shell}/run`, { command: 'echo first' });
});
afterAll(() => served.stop());

/** The answers of two requests differ. */
async function differ(one: Promise<unknown>, two: Promise<unknown>): Promise<void> {
  expect(await one).not.toEqual(await two);
}

/** A GET with and without a parameter. */
const parameter =
  (path: () => string, query: string, without = ''): Effect =>
  () =>
    differ(get(`${path()}?${query}`), get(`${path()}?${without}`));

const text = async (id: string): Promise<string> =>
  ((await get(`/v1/processes/${id}/text?waitMs=20000&drainMs=2000`)) as { text: string }).text;

/** The fields of a start, by the operation that takes them. */
function startFields(start: (spec: object) => Promise<ProcessInfo>, pty: boolean) {
  const prints = (script: string, more: object): Promise<string> =>
    start({ argv: ['sh', '-c', script], ...more }).then(({ id }) => text(id));
  const shows =
    (spec: object, wanted: object): Effect =>
    async () =>
      expect(await start({ argv: ['true'], ...spec })).toMatchObject(wanted);
  return {
    argv: shows({ argv: ['true', 'x'] }, { argv: ['true', 'x'] }),
    cwd: shows({ cwd: '/usr' }, { cwd: '/usr' }),
    environment: async () =>
      expect(await prints('echo "[$A]"', { environment: { set: { A: 'a1' } } })).toContain('[a1]'),
    env: async () => expect(await prints('echo "[$A]"', { env: { A: 'a2' } })).toContain('[a2]'),
    size: shows({ size, ...(!pty && { streams: 'pty' }) }, { size }),
    term: shows(
      { term: 'vt100', ...(!pty && { streams: 'pty' }) },
      { terminal: { term: 'vt100' } },
    ),
    id: async () => {
      const id = `id-${Math.random().toString(36).slice(2)}`;
      expect(await start({ argv: ['true'], id })).toMatchObject({ id });
    },
    key: shows(
      { key: `key-${pty}-${String(start).length}` },
      { key: expect.any(String) as string },
    ),
    name: shows({ name: 'named' }, { name: 'named' }),
    labels: shows({ labels: { a: 'b' } }, { labels: { a: 'b' } }),
    lease: async () => {
      await post('/v1/leases/of-fields', { ttlMs: 60_000 });
      expect(await start({ argv: ['true'], lease: 'of-fields' })).toMatchObject({
        lease: 'of-fields',
      });
    },
    keepMs: async () => {
      const { id } = await start({ argv: ['sleep', '1000'], keepMs: 1 });
      await post(`/v1/processes/${id}/signal`, { signal: 'kill' });
      for (let status = 200; status === 200;)
        ({ status } = await client.get(`/v1/processes/${id}`));
    },
    hardTimeoutMs: async () => {
      const { id } = await start({ argv: ['sleep', '1000'], hardTimeoutMs: 1 });
      const { met } = await post(`/v1/processes/${id}/wait`, {});
      expect(met).toMatchObject([{ process: { outcome: { kind: 'timeout' } } }]);
    },
    idleTimeoutMs: shows(
      { idleTimeoutMs: 4321, ...(!pty && { streams: 'pty' }) },
      { terminal: { idleTimeoutMs: 4321 } },
    ),
    marks: shows(
      { argv: ['bash'], marks: true, ...(!pty && { streams: 'pty' }) },
      { terminal: { marks: 'bash' } },
    ),
  };
}

/** Fields that a start on pipes has besides. */
function pipeFields(start: (spec: object) => Promise<ProcessInfo>) {
  const inputs = async (spec: object): Promise<unknown> => {
    const { id } = await start({ argv: ['cat'], stdin: 'pipe', ...spec });
    await post(`/v1/processes/${id}/stdin`, { text: 'typed', eof: true });
    const { events } = await get(`/v1/processes/${id}/events`);
    return (events as { kind: string; body?: { data?: string } }[]).find(
      ({ kind }) => kind === 'input',
    )?.body?.data;
  };
  return {
    command: async () =>
      expect(await start({ command: 'echo c' })).toMatchObject({ command: 'echo c' }),
    arg0: async () => {
      const { id } = await start({ argv: ['sh', '-c', 'echo $0'], arg0: 'zero' });
      expect(await text(id)).toBe('zero\n');
    },
    streams: async () =>
      expect(await start({ command: 'true', streams: 'separate' })).toMatchObject({
        streams: 'separate',
      }),
    stdin: async () =>
      expect(await start({ command: 'true', stdin: 'pipe' })).toMatchObject({ stdin: 'pipe' }),
    recordInput: () => differ(inputs({ recordInput: true }), inputs({ recordInput: false })),
  };
}

const started = async (spec: object): Promise<ProcessInfo> => client.start(spec);
const ran = async (spec: object): Promise<ProcessInfo> =>
  ((await post('/v1/run', { timeoutMs: 0, ...spec })) as unknown as { process: ProcessInfo })
    .process;
const opened = async (spec: object): Promise<ProcessInfo> =>
  ((await post('/v1/terminals', spec)) as unknown as { process: ProcessInfo }).process;

const at = (id: () => string, rest: string) => () => `/v1/processes/${id()}${rest}`;
const ofEnded = (rest: string) => at(() => ended, rest);
const ofShell = (rest: string) => () => `/v1/terminals/${shell}${rest}`;

const processEffects: Record<string, Record<string, Effect>> = {
  start: {
    ...startFields(started, false),
    ...pipeFields(started),
    waitMs: async () =>
      expect(await started({ command: 'true', waitMs: 20_000 })).toHaveProperty('outcome'),
    settleMs: async () => {
      const spec = { command: 'sleep 0.1 & true', waitMs: 20_000, settleMs: 20_000 };
      expect(await started(spec)).toMatchObject({ settled: true });
    },
  },
  run: {
    ...startFields(ran, false),
    ...pipeFields(ran),
    timeoutMs: async () =>
      expect(await post('/v1/run', { command: 'sleep 1000', timeoutMs: 1 })).toMatchObject({
        timedOut: true,
      }),
    maxBytes: async () =>
      expect(await post('/v1/run', { command: 'seq 9999', maxBytes: 300 })).toHaveProperty(
        'truncated',
      ),
    clean: async () => {
      const command = String.raw`printf '\033[31mred'`;
      expect(await post('/v1/run', { command, clean: true })).toMatchObject({ text: 'red' });
    },
  },
  list: {
    state: parameter(() => '/v1/processes', 'state=running'),
    name: parameter(() => '/v1/processes', 'name=cat'),
    key: parameter(() => '/v1/processes', 'key=nothing'),
    label: parameter(() => '/v1/processes', 'label=nothing'),
    limit: parameter(() => '/v1/processes', 'limit=1'),
    skip: parameter(() => '/v1/processes', 'limit=1&skip=1', 'limit=1'),
    before: async () => {
      const { next } = await get('/v1/processes?limit=1');
      await differ(
        get(`/v1/processes?limit=1&before=${String(next)}`),
        get('/v1/processes?limit=1'),
      );
    },
  },
  remove: {
    force: async () => {
      const { id } = await started({ command: 'sleep 1000' });
      expect((await client.delete(`/v1/processes/${id}`)).status).toBe(409);
      expect((await client.delete(`/v1/processes/${id}?force=true`)).status).toBe(200);
    },
  },
  text: {
    maxBytes: parameter(ofEnded('/text'), 'maxBytes=8'),
    maxLineBytes: async () => {
      const id = await client.run({ command: 'seq -s, 999; seq 3' });
      await differ(
        get(`/v1/processes/${id}/text?maxLineBytes=64`),
        get(`/v1/processes/${id}/text`),
      );
    },
    waitMs: async () => {
      const { id } = await started({ command: 'sleep 0.2; echo late' });
      expect(await get(`/v1/processes/${id}/text?waitMs=20000`)).toMatchObject({ text: 'late\n' });
    },
    drainMs: async () => {
      const { id } = await started({ command: '(sleep 0.2; echo behind) & echo first' });
      const path = `/v1/processes/${id}/text?waitMs=20000&drainMs=20000`;
      expect(await get(path)).toMatchObject({ text: 'first\nbehind\n' });
    },
    clean: parameter(ofEnded('/text'), 'clean=true'),
  },
  events: {
    after: parameter(ofEnded('/events'), 'after=2'),
    offset: async () => {
      const { nextAfter } = await get(`/v1/processes/${ended}/events?maxBytes=1`);
      const page = await get(`/v1/processes/${ended}/events?after=${String(nextAfter)}&offset=4`);
      expect(page).toHaveProperty('nextOffset');
    },
    maxBytes: parameter(ofEnded('/events'), 'maxBytes=1'),
    waitMs: async () => {
      const { id, seq } = await started({ command: 'read x; echo came', stdin: 'pipe' });
      const waiting = get(`/v1/processes/${id}/events?after=${seq}&waitMs=20000`);
      await post(`/v1/processes/${id}/stdin`, { text: '\n' });
      expect((await waiting)['events']).not.toEqual([]);
    },
  },
  bytes: {
    offset: async () =>
      expect((await client.get(`/v1/processes/${ended}/bytes?offset=4`)).bytes.toString()).toMatch(
        /^Two/,
      ),
    maxBytes: async () =>
      expect((await client.get(`/v1/processes/${ended}/bytes?maxBytes=3`)).bytes).toHaveLength(3),
  },
  follow: {
    after: async () => {
      const all = await client.frames(`/v1/processes/${ended}/follow`);
      const rest = await client.frames(`/v1/processes/${ended}/follow?after=2`);
      expect(rest.length).toBe(all.length - 2);
    },
  },
  waitOne: {
    for: () =>
      differ(
        post(`/v1/processes/${ended}/wait`, { for: 'closed' }),
        post(`/v1/processes/${ended}/wait`, { for: [{ kind: 'text', text: 'Two' }] }),
      ),
    timeoutMs: async () =>
      expect(await post(`/v1/processes/${cat}/wait`, { timeoutMs: 1 })).toMatchObject({
        timedOut: true,
      }),
  },
  wait: {
    waits: async () => {
      const waits = [{ id: ended, for: [{ kind: 'exit' }] }];
      expect(await post('/v1/wait', { waits })).toMatchObject({ met: [{ id: ended }] });
    },
    mode: async () => {
      const waits = [ended, cat].map((id) => ({ id, for: [{ kind: 'exit' }] }));
      const wait = (mode: string) => post('/v1/wait', { waits, mode, timeoutMs: 1 });
      expect([await wait('first'), await wait('all')]).toMatchObject([
        { timedOut: false },
        { timedOut: true },
      ]);
    },
    timeoutMs: async () => {
      const waits = [{ id: cat, for: [{ kind: 'exit' }] }];
      expect(await post('/v1/wait', { waits, timeoutMs: 1 })).toMatchObject({ timedOut: true });
    },
  },
  stdin: {
    text: async () =>
      expect(await post(`/v1/processes/${cat}/stdin`, { text: 'abc' })).toMatchObject({ bytes: 3 }),
    base64: async () =>
      expect(await post(`/v1/processes/${cat}/stdin`, { base64: 'AAECAw==' })).toMatchObject({
        bytes: 4,
      }),
    eof: async () => {
      const { id } = await started({ command: 'cat', stdin: 'pipe' });
      await post(`/v1/processes/${id}/stdin`, { eof: true });
      expect(await post(`/v1/processes/${id}/wait`, {})).toMatchObject({ timedOut: false });
    },
    writeId: async () => {
      const write = () => post(`/v1/processes/${cat}/stdin`, { text: 'x', writeId: 'once' });
      expect([await write(), await write()]).toMatchObject([
        { repeated: false },
        { repeated: true },
      ]);
    },
  },
  resize: {
    size: async () => {
      await post(`/v1/processes/${shell}/resize`, { size });
      expect(await get(`/v1/processes/${shell}`)).toMatchObject({ size });
    },
  },
  signal: signalFields('/v1/processes'),
  search: {
    pattern: parameter(ofEnded('/search'), 'pattern=one', 'pattern=Two'),
    kind: parameter(ofEnded('/search'), 'pattern=o.e&kind=text', 'pattern=o.e'),
    ignoreCase: parameter(ofEnded('/search'), 'pattern=two&ignoreCase=true', 'pattern=two'),
    from: parameter(ofEnded('/search'), 'pattern=one&from=4', 'pattern=one'),
    to: parameter(ofEnded('/search'), 'pattern=one&to=4', 'pattern=one'),
    context: parameter(ofEnded('/search'), 'pattern=Two&context=1', 'pattern=Two&context=0'),
    lineNumbers: parameter(ofEnded('/search'), 'pattern=Two&lineNumbers=true', 'pattern=Two'),
    limit: parameter(ofEnded('/search'), 'pattern=one&limit=1', 'pattern=one'),
  },
  holdLease: {
    ttlMs: async () => {
      await post('/v1/leases/short', { ttlMs: 60_000 });
      const { id } = await started({ command: 'sleep 1000', lease: 'short' });
      await post('/v1/leases/short', { ttlMs: 1 });
      expect(await post(`/v1/processes/${id}/wait`, {})).toMatchObject({ timedOut: false });
    },
  },
  changes: {
    limit: parameter(() => '/v1/changes', 'limit=1', 'limit=10000'),
    epoch: async () => {
      const { epoch, version } = await get('/v1/changes?limit=10000');
      const since = `after=${String(version)}`;
      await differ(
        get(`/v1/changes?limit=10000&${since}&epoch=${String(epoch)}`),
        get(`/v1/changes?limit=10000&${since}&epoch=another`),
      );
    },
    after: async () => {
      const { epoch, version } = await get('/v1/changes?limit=10000');
      const since = `/v1/changes?limit=10000&epoch=${String(epoch)}`;
      await differ(get(`${since}&after=${String(version)}`), get(since));
    },
    waitMs: async () => {
      const { epoch, version } = await get('/v1/changes?limit=10000');
      const since = `/v1/changes?epoch=${String(epoch)}&after=${String(version)}`;
      const waiting = get(`${since}&waitMs=20000`);
      await client.run({ command: 'true' });
      expect((await waiting)['version']).not.toBe(version);
    },
  },
  searchAll: Object.fromEntries(
    [
      ['pattern', 'pattern=nothing-of-this'],
      ['kind', 'pattern=o.e&kind=text'],
      ['ignoreCase', 'pattern=two&ignoreCase=true', 'pattern=two'],
      ['context', 'pattern=Two&context=1', 'pattern=Two'],
      ['name', 'pattern=one&name=nobody'],
      ['label', 'pattern=one&label=none'],
      ['state', 'pattern=one&state=lost'],
      ['limit', 'pattern=one&limit=1'],
      ['perProcess', 'pattern=one&perProcess=1'],
      ['before', 'pattern=one&before=0'],
    ].map(([field = '', query = '', without = 'pattern=one']) => [
      field,
      () => differ(searched(query), searched(without)),
    ]),
  ),
  timeline: { points: parameter(ofEnded('/timeline'), 'points=2') },
  pointAt: {
    offset: parameter(ofEnded('/at'), 'offset=1000000', 'offset=0'),
    ms: parameter(ofEnded('/at'), 'ms=281474976710000', 'ms=1'),
  },
  shareProcess: {
    forMs: async () => {
      const share = async (body: object): Promise<number> => {
        const { session } = await post(`/v1/processes/${ended}/share`, body);
        const { createdAtMs, expiresAtMs } = session as Record<string, number>;
        return (expiresAtMs ?? 0) - (createdAtMs ?? 0);
      };
      expect(await share({ forMs: 5000 })).toBe(5000);
      expect(await share({})).toBe(3_600_000);
    },
  },
  attention: {
    quietMs: async () => {
      const { id } = await started({ command: 'exec sleep 1000' });
      const needs = async (query: string): Promise<string[]> =>
        ((await get(`/v1/attention${query}`)) as { needs: { id: string }[] }).needs.map(
          (need) => need.id,
        );
      await post(`/v1/processes/${id}/wait`, { for: [{ kind: 'silence', forMs: 2 }] });
      expect(await needs('?quietMs=1')).toContain(id);
      expect(await needs('')).not.toContain(id);
      await post(`/v1/processes/${id}/signal`, { signal: 'SIGKILL' });
    },
  },
  completions: {
    subscriber: async () => {
      const completions = await unacknowledged('of-fields');
      await post('/v1/completions/acknowledge', {
        subscriber: 'of-fields',
        numbers: completions.map(({ number }) => number),
      });
      expect(await unacknowledged('another')).not.toEqual([]);
      expect((await unacknowledged('of-fields')).length).toBeLessThan(completions.length);
    },
    after: async () => {
      const [first] = await unacknowledged('after');
      await differ(unacknowledged('after'), unacknowledged('after', `&after=${first?.number}`));
    },
    limit: async () => expect(await unacknowledged('limit', '&limit=1')).toHaveLength(1),
    waitMs: async () => {
      const last = (await unacknowledged('waits', '&limit=1000')).at(-1)?.number ?? 0;
      const waiting = unacknowledged('waits', `&after=${last}&waitMs=20000`);
      await client.run({ command: 'true' });
      expect(await waiting).not.toEqual([]);
    },
  },
  followCompletions: {
    subscriber: async () => {
      const { number } = (await unacknowledged('f1'))[0] ?? { number: 0 };
      await post('/v1/completions/acknowledge', { subscriber: 'f1', numbers: [number] });
      await differ(firstFollowed('?subscriber=f1'), firstFollowed('?subscriber=f2'));
    },
    after: async () => {
      const { number } = (await unacknowledged('f3'))[0] ?? { number: 0 };
      await differ(
        firstFollowed(`?subscriber=f3&after=${number}`),
        firstFollowed('?subscriber=f3'),
      );
    },
  },
  acknowledge: {
    subscriber: async () => {
      const [first] = await unacknowledged('a1');
      await post('/v1/completions/acknowledge', { subscriber: 'a1', numbers: [first?.number] });
      await differ(unacknowledged('a1'), unacknowledged('a2'));
    },
    numbers: async () =>
      expect(
        await post('/v1/completions/acknowledge', { subscriber: 'a3', numbers: [] }),
      ).toMatchObject({ acknowledged: 0 }),
  },
};

async function unacknowledged(subscriber: string, more = ''): Promise<{ number: number }[]> {
  const answer = await get(`/v1/completions?subscriber=${subscriber}${more}`);
  return answer['completions'] as { number: number }[];
}

async function firstFollowed(query: string): Promise<string | undefined> {
  const frames = await client.frames(`/v1/completions/follow${query}`, {
    until: (each) => each.some(({ event }) => event === 'completion'),
  });
  return frames.find(({ event }) => event === 'completion')?.id;
}

function signalFields(path: string): Record<string, Effect> {
  const isTerminal = path.endsWith('terminals');
  const start = (command: string): Promise<ProcessInfo> =>
    isTerminal ? opened({ argv: ['sh', '-c', command] }) : started({ command });
  const outcome = async (spec: object, before = ':'): Promise<unknown> => {
    const { id } = await start(`${before}; echo up; while :; do sleep 1; done`);
    await post(`/v1/processes/${id}/wait`, { for: [{ kind: 'text', text: 'up' }] });
    await post(`${path}/${id}/signal`, { signal: 'SIGTERM', ...spec });
    const { met } = await post(`/v1/processes/${id}/wait`, {});
    return (met as { process: ProcessInfo }[])[0]?.process.outcome;
  };
  return {
    signal: async () =>
      expect(await outcome({ signal: 'SIGKILL', reach: 'all' })).toMatchObject({
        signal: 'SIGKILL',
      }),
    by: async () => expect(await outcome({ by: 'me', reach: 'all' })).toMatchObject({ by: 'me' }),
    reach: async () => {
      const { id } = await start('echo up; sleep 1000');
      const refused = await client.post(`${path}/${id}/signal`, { signal: 'SIGTERM', reach: 'no' });
      expect(refused.status).toBe(400);
      expect(await outcome({ reach: 'all' })).toMatchObject({ signal: 'SIGTERM' });
    },
    graceMs: async () =>
      expect(await outcome({ signal: 'terminate', graceMs: 1 }, 'trap "" TERM')).toMatchObject({
        signal: 'SIGKILL',
      }),
  };
}

const screenWait = (wait: object): Promise<Json> =>
  post(`/v1/terminals/${shell}/wait`, { timeoutMs: 20_000, ...wait });
const matches =
  (wait: object): Effect =>
  async () =>
    expect(await screenWait(wait)).toMatchObject({ matched: true });
const input =
  (body: object, shown: string): Effect =>
  async () => {
    await post(`/v1/terminals/${shell}/input`, body);
    expect(await screenWait({ text: shown })).toMatchObject({ matched: true });
    await post(`/v1/terminals/${shell}/input`, { keys: ['C-c'] });
  };
const runs = (body: object): Promise<Json> =>
  post(`/v1/terminals/${shell}/run`, { timeoutMs: 20_000, ...body });
const bytesOf = async (path: string): Promise<string> =>
  (await client.get(path)).bytes.toString('latin1');
const media =
  (path: () => string, query: string, without = ''): Effect =>
  () =>
    differ(bytesOf(`${path()}?${query}`), bytesOf(`${path()}?${without}`));

const terminalEffects: Record<string, Record<string, Effect>> = {
  openTerminal: startFields(opened, true),
  listTerminals: {
    state: parameter(() => '/v1/terminals', 'state=closed'),
    name: parameter(() => '/v1/terminals', 'name=nothing'),
  },
  runInTerminal: {
    command: async () =>
      expect(await runs({ command: 'echo hi' })).toMatchObject({ output: 'hi\n' }),
    run: async () =>
      expect(await runs({ command: 'true', run: 'r7' })).toMatchObject({ run: 'r7' }),
    wait: async () =>
      expect(await runs({ command: 'true', wait: false })).toMatchObject({ completed: false }),
    timeoutMs: async () => {
      const { id } = await opened(BASH);
      const path = `/v1/terminals/${id}/run`;
      expect(await post(path, { command: 'sleep 1000', timeoutMs: 1 })).toMatchObject({
        timedOut: true,
      });
    },
    completion: async () =>
      expect(await runs({ command: 'true', completion: 'sentinel' })).toMatchObject({
        completion: 'sentinel',
      }),
  },
  waitForRun: {
    timeoutMs: async () => {
      const { id } = await opened(BASH);
      await post(`/v1/terminals/${id}/run`, { command: 'sleep 1000', run: 'long', wait: false });
      expect(await get(`/v1/terminals/${id}/runs/long?timeoutMs=1`)).toMatchObject({
        timedOut: true,
      });
    },
  },
  terminalInput: {
    text: input({ text: 'typed-1' }, 'typed-1'),
    base64: input({ base64: Buffer.from('typed-2').toString('base64') }, 'typed-2'),
    paste: input({ paste: 'pasted-3' }, 'pasted-3'),
    keys: input({ keys: ['k', '4', 'x'] }, 'k4x'),
    writeId: async () => {
      const write = () => post(`/v1/terminals/${shell}/input`, { text: ' ', writeId: 'w1' });
      expect([await write(), await write()]).toMatchObject([
        { repeated: false },
        { repeated: true },
      ]);
    },
  },
  markTerminal: {
    label: async () => {
      await post(`/v1/terminals/${shell}/mark`, { label: 'my mark' });
      expect(await bytesOf(ofShell('/recording')())).toContain('my mark');
    },
  },
  resizeTerminal: {
    size: async () => {
      await post(`/v1/terminals/${shell}/resize`, { size: { cols: 90, rows: 12 } });
      expect(await get(`/v1/terminals/${shell}`)).toMatchObject({ size: { cols: 90, rows: 12 } });
    },
  },
  signalTerminal: signalFields('/v1/terminals'),
  waitForScreen: {
    text: matches({ text: '$' }),
    regex: matches({ regex: '[$]' }),
    where: matches({ text: 'first', where: 'stream' }),
    gone: matches({ text: 'never there', gone: true }),
    stableMs: matches({ stableMs: 1 }),
    cursorRow: async () =>
      expect(await screenWait({ cursorRow: 499, timeoutMs: 1 })).toMatchObject({ matched: false }),
    cursorCol: async () =>
      expect(await screenWait({ cursorCol: 999, timeoutMs: 1 })).toMatchObject({ matched: false }),
    changedFrom: matches({ changedFrom: 'another hash' }),
    afterSeq: async () =>
      expect(await screenWait({ text: '$', afterSeq: 1e9, timeoutMs: 1 })).toMatchObject({
        matched: false,
      }),
    timeoutMs: async () =>
      expect(await screenWait({ text: 'never there', timeoutMs: 1 })).toMatchObject({
        timedOut: true,
      }),
  },
  snapshotTerminal: {
    format: parameter(ofShell('/snapshot'), 'format=text'),
    scrollback: parameter(ofShell('/snapshot'), 'scrollback=true'),
    cells: parameter(ofShell('/snapshot'), 'cells=true'),
    at: parameter(ofShell('/snapshot'), 'at=1'),
  },
  screenshotTerminal: {
    format: media(ofShell('/screenshot'), 'format=svg'),
    at: media(ofShell('/screenshot'), 'at=1'),
    theme: media(ofShell('/screenshot'), 'theme=light'),
    scale: media(ofShell('/screenshot'), 'scale=2'),
    showCursor: media(ofShell('/screenshot'), 'showCursor=false'),
  },
  recordTerminal: {
    format: media(ofShell('/recording'), 'format=asciicast-v3'),
    speed: media(ofShell('/recording'), 'speed=1000'),
    idleLimitMs: media(ofShell('/recording'), 'idleLimitMs=0'),
    from: media(ofShell('/recording'), 'from=5'),
    to: media(ofShell('/recording'), 'to=2'),
    theme: media(ofShell('/recording'), 'format=gif&theme=light', 'format=gif'),
  },
  attachTerminal: {
    after: async () => {
      expect(await hello('')).toHaveProperty('screen');
      expect(await hello('after=1')).toMatchObject({ seq: 1 });
    },
    at: async () => {
      expect(await hello('at=1')).toMatchObject({ seq: 1, screen: expect.any(String) as string });
    },
    readOnly: async () => {
      const socket = attach('readOnly=true');
      const problem = await new Promise<string>((resolve) => {
        socket.on('open', () => socket.send(Buffer.from('x')));
        socket.on('message', (data: Buffer, binary) => {
          if (!binary && data.toString().includes('problem')) resolve(data.toString());
        });
      });
      expect(problem).toContain('only reads');
      socket.terminate();
    },
  },
  batchTerminal: {
    steps: async () =>
      expect(
        await post(`/v1/terminals/${shell}/batch`, { steps: [{ run: 'true' }] }),
      ).toMatchObject({ completedCount: 1 }),
    keepGoing: async () => {
      const steps = [{ wait: { text: 'never there', timeout: 1 } }, { run: 'true' }];
      const batch = (keepGoing: boolean) =>
        post(`/v1/terminals/${shell}/batch`, { steps, keepGoing });
      expect([await batch(false), await batch(true)]).toMatchObject([
        { completedCount: 0 },
        { completedCount: 1 },
      ]);
    },
  },
};

function attach(query: string): WebSocket {
  const { port, token } = served;
  const path = `/v1/terminals/${shell}/attach?${query}`;
  return new WebSocket(`ws://127.0.0.1:${port}${path}`, {
    headers: { authorization: `Bearer ${token}` },
  });
}

async function hello(query: string): Promise<Json> {
  const socket = attach(query);
  const first = await new Promise<string>((resolve) =>
    socket.once('message', (data: Buffer) => resolve(data.toString())),
  );
  socket.terminate();
  return JSON.parse(first) as Json;
}

const effects = { ...processEffects, ...terminalEffects };

describe('every accepted field', () => {
  it('[API83] of a native operation has a case here', () => {
    const fields = Object.entries<NativeOperation>(nativeOperations)
      // The owner has rules of its own, and so has the sign-in of pages.
      .filter(([name]) => name !== 'openSession')
      .flatMap(([name, { query, body }]) =>
        [...Object.keys(query.entries), ...Object.keys(body?.entries ?? {})]
          .filter((field) => field !== 'owner')
          .map((field) => `${name}.${field}`),
      );
    const cases = Object.entries(effects).flatMap(([name, each]) =>
      Object.keys(each).map((field) => `${name}.${field}`),
    );
    expect(cases.filter((each) => !fields.includes(each))).toEqual([]);
    // Whole in the slow run: a field that is new today may get its case tomorrow, but not after a release.
    if (isSlowRun) expect(fields.filter((each) => !cases.includes(each))).toEqual([]);
  });

  for (const [name, each] of Object.entries(effects))
    it(`[API83] of ${name} changes something`, async () => {
      const failures: string[] = [];
      for (const [field, effect] of Object.entries(each))
        await effect().catch((error: unknown) => failures.push(`${field}: ${String(error)}`));
      expect(failures).toEqual([]);
    });
});
