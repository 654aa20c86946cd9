// The native dialect over real sockets: every operation, in whose name it acts, what it refuses, and that every answer is
// as the OpenAPI document says (the client holds each against it).
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { defaultLimits } from '../../src/protocol/limits.ts';
import type { HoldfastError } from '../../src/protocol/errors.ts';
import type { ProcessInfo } from '../../src/protocol/process.ts';
import { nativeOperations, type NativeOperation } from '../../src/server/native/operations.ts';
import type { NativeEvent } from '../../src/server/native/events.ts';
import { StartRate } from '../../src/server/start-rate.ts';
import { serve, type Served } from '../support/coder-client.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { program, temporaryFolder } from '../support/hosts.ts';
import { answered, NativeClient, outputOf } from '../support/native-client.ts';

let served: Served;
let client: NativeClient;

beforeAll(async () => {
  served = await serve();
  client = NativeClient.of(served);
});

afterAll(() => served.stop());

const scoped = (owner: string, headers = {}): NativeClient =>
  client.with({ authorization: `Bearer ${served.tokens.create(owner).token}`, ...headers });

const errorOf = ({ status, json }: { status: number; json: unknown }) => ({
  status,
  code: (json as { error?: { code: string } }).error?.code,
});

describe('native operations', () => {
  it('[API1] a process is started, listed, got, removed', async () => {
    const name = 'one-life';
    const { id } = await client.start({ command: 'echo hello; exit 7', name, key: 'k-life' });
    await client.post(`/v1/processes/${id}/wait`, { for: [{ kind: 'closed' }] });
    const again = await client.post('/v1/processes', {
      command: 'echo hello; exit 7',
      name,
      key: 'k-life',
    });
    expect(again.json).toMatchObject({ attached: true, process: { id } });
    const { json: got } = await client.get(`/v1/processes/${id}`);
    expect(got).toMatchObject({ id, name, state: 'closed', outcome: { kind: 'exit', code: 7 } });
    for (const filter of [`name=${name}`, 'key=k-life', `name=${name}&state=closed`])
      expect((await client.get(`/v1/processes?${filter}`)).json).toMatchObject({
        total: 1,
        processes: [{ id }],
      });
    expect((await client.get(`/v1/processes?name=${name}&state=running`)).json).toEqual({
      processes: [],
      total: 0,
    });
    expect((await client.delete(`/v1/processes/${id}`)).status).toBe(200);
    expect(errorOf(await client.get(`/v1/processes/${id}`))).toEqual({
      status: 404,
      code: 'not_found',
    });
  });

  it('[API50] a short command is run in one call, which ends nothing when its time is over', async () => {
    const done = await client.post('/v1/run', { command: 'echo out; echo err >&2; exit 3' });
    expect(done.json).toMatchObject({
      text: 'out\nerr\n',
      timedOut: false,
      attached: false,
      process: { outcome: { kind: 'exit', code: 3 } },
    });
    const slow = { command: 'echo first; read line', stdin: 'pipe', key: 'run-slow' };
    const late = await client.post('/v1/run', { ...slow, timeoutMs: 1 });
    expect(late.json).toMatchObject({ timedOut: true, process: { state: 'running' } });
    const { id } = (late.json as { process: ProcessInfo }).process;
    const again = client.post('/v1/run', slow);
    await client.post(`/v1/processes/${id}/stdin`, { eof: true });
    expect((await again).json).toMatchObject({
      text: 'first\n',
      attached: true,
      timedOut: false,
      process: { id },
    });
    expect(errorOf(await client.post('/v1/run', { command: 'true', waitMs: 5 }))).toEqual({
      status: 400,
      code: 'invalid_input',
    });
  });

  it('[API51] a wait without a condition is for the exit, and a word is a condition', async () => {
    const { id } = await client.start({ command: 'read line; exit 5', stdin: 'pipe' });
    const waits = [
      {},
      { for: 'exit' },
      { for: 'closed' },
      { for: 'settled' },
      { for: [{ kind: 'text', text: 'never' }, 'exit'] },
    ].map((body) => client.post(`/v1/processes/${id}/wait`, body));
    const text = client.get(`/v1/processes/${id}/text?waitMs=60000`);
    await client.post(`/v1/processes/${id}/stdin`, { eof: true });
    expect((await Promise.all(waits)).map(({ json }) => json)).toMatchObject(
      ['exit', 'exit', 'closed', 'settled', 'exit'].map((kind) => ({
        timedOut: false,
        met: [{ kind }],
      })),
    );
    expect((await text).json).toMatchObject({ process: { outcome: { kind: 'exit', code: 5 } } });
    expect(errorOf(await client.post(`/v1/processes/${id}/wait`, { for: 'end' }))).toEqual({
      status: 400,
      code: 'invalid_input',
    });
  });

  it('[API81] says what is wrong with an input in plain words, and never what was given', async () => {
    const cases: [path: string, body: unknown, problem: string][] = [
      ['/v1/processes', { argv: 'SECRET' }, '"argv": must be a list'],
      ['/v1/processes', { command: 7 }, '"command": must be a text'],
      ['/v1/processes', { command: '' }, '"command": must have 1 or more characters'],
      ['/v1/processes', { argv: [] }, '"argv": must have 1 or more entries'],
      ['/v1/processes', { command: 'x', env: 'SECRET' }, '"env": must be an object'],
      ['/v1/processes', { command: 'x', size: { cols: 80 } }, '"size.rows": is missing'],
      ['/v1/processes', { command: 'x', keepMs: 1.5 }, '"keepMs": must be a whole number'],
      ['/v1/processes', { command: 'x', keepMs: -1 }, '"keepMs": must be 0 or more'],
      [
        '/v1/processes',
        { command: 'x', streams: 'SECRET' },
        '"streams": must be "merged", "separate" or "pty"',
      ],
      ['/v1/processes', { command: 'x', marks: 'SECRET' }, '"marks": must be true or false'],
      ['/v1/processes', { command: 'x', comand: 'SECRET' }, '"comand": is not known here'],
      ['/v1/processes/x/wait', { for: 'SECRET' }, '"for": must be "exit", "closed" or "settled"'],
      ['/v1/processes/x/wait', { for: [{ kind: 'text' }] }, '"for.0.text": is missing'],
    ];
    const answers = await Promise.all(cases.map(([path, body]) => client.post(path, body)));
    expect(
      answers.map(({ json }) => (json as { error: { message: string } }).error.message),
    ).toEqual(cases.map(([, , problem]) => problem));
  });

  it('[API1] a list is paged and says its total', async () => {
    const mine = client.with({ 'holdfast-owner': 'pager' });
    const ids: string[] = [];
    for (let index = 0; index < 5; index += 1) ids.unshift(await mine.run({ command: 'true' }));
    const seen: string[] = [];
    for (let skip = 0; skip < 5; skip += 2) {
      const { json } = await mine.get(`/v1/processes?limit=2&skip=${skip}`);
      const page = json as { processes: ProcessInfo[]; total: number };
      expect(page.total).toBe(5);
      seen.push(...page.processes.map(({ id }) => id));
    }
    expect(seen).toEqual(ids);
  });

  it('[API2] a live process is removed only by force; pruning ends nothing', async () => {
    const mine = client.with({ 'holdfast-owner': 'pruner' });
    const live = await mine.start({ command: 'read line', stdin: 'pipe' });
    // Closed, but a descendant lives on without its streams.
    const left = await mine.run({
      command: 'setsid sleep 600 </dev/null >/dev/null 2>&1 & exit 0',
    });
    for (const command of ['true', 'false']) {
      const ended = await mine.run({ command });
      await mine.post(`/v1/processes/${ended}/wait`, { for: 'settled' });
    }
    const foreign = await client.run({ command: 'true' });
    expect((await mine.post('/v1/prune')).json).toEqual({ removed: 2 });
    const { json } = await mine.get('/v1/processes');
    expect((json as { processes: ProcessInfo[] }).processes.map(({ id }) => id)).toEqual([
      live.id,
      left,
    ]);
    expect((await client.get(`/v1/processes/${foreign}`)).status).toBe(200);
    expect(errorOf(await mine.delete(`/v1/processes/${live.id}`))).toEqual({
      status: 409,
      code: 'still_running',
    });
    for (const id of [live.id, left])
      expect((await mine.delete(`/v1/processes/${id}?force=true`)).status).toBe(200);
    expect((await mine.get('/v1/processes')).json).toEqual({ processes: [], total: 0 });
  });

  it('[API3] output as text is head and tail, clean when asked', async () => {
    const id = await client.run({ command: "printf '\\033[31mred\\033[0m\\n'; seq 20000" });
    const raw = (await client.get(`/v1/processes/${id}/text?maxBytes=1024`)).json as {
      text: string;
      truncated: { originalBytes: number };
    };
    expect(raw.text.startsWith('\u001b[31mred\u001b[0m\n1\n')).toBe(true);
    expect(raw.text.endsWith('20000\n')).toBe(true);
    expect(raw.truncated.originalBytes).toBe(108_907);
    const clean = (await client.get(`/v1/processes/${id}/text?clean=true`)).json as {
      text: string;
    };
    expect(clean.text.startsWith('red\n1\n')).toBe(true);
    const long = await client.run({ command: "printf '%0500d\\n' 7" });
    const cut = (await client.get(`/v1/processes/${long}/text?maxLineBytes=64`)).json;
    expect(cut).toMatchObject({ truncated: { cutLines: 1 } });
  });

  it('[API4] a page of events carries text as text, other bytes as base64, and what is needed to go on', async () => {
    const command = "echo straße; printf '\\377\\000' >&2; exit 3";
    const id = await client.run({ command, streams: 'separate' });
    const events: NativeEvent[] = [];
    let at = { nextAfter: 0, nextOffset: 0, end: false };
    while (!at.end) {
      const query = `after=${at.nextAfter}&offset=${at.nextOffset}&maxBytes=1`;
      const { json } = await client.get(`/v1/processes/${id}/events?${query}`);
      at = json;
      events.push(...(json as { events: NativeEvent[] }).events);
    }
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, index) => index + 1));
    const outputs = events.filter((event) => event.kind === 'output');
    expect(outputs.find(({ stream }) => stream === 'stdout')).toMatchObject({ text: 'straße\n' });
    expect(outputs.find(({ stream }) => stream === 'stderr')).toMatchObject({ base64: '/wA=' });
    expect(events.at(-1)?.kind).toBe('closed');
    expect(JSON.stringify(events[0])).not.toMatch(/serial|fingerprint|bootId/);
  });

  it('[API4] a page can be waited for', async () => {
    const { id, seq } = await client.start({ command: 'cat', stdin: 'pipe' });
    const waiting = client.get(`/v1/processes/${id}/events?after=${seq}&waitMs=60000`);
    await client.post(`/v1/processes/${id}/stdin`, { text: 'now\n' });
    const { json } = await waiting;
    expect((json as { events: NativeEvent[] }).events.length).toBeGreaterThan(0);
    const { json: nothing } = await client.get(`/v1/processes/${id}/events?after=1000&waitMs=1`);
    expect(nothing).toMatchObject({ events: [], end: false, state: 'running' });
    await client.delete(`/v1/processes/${id}?force=true`);
  });

  it('[API5] stdin takes text, bytes and its end, and a write id is applied once', async () => {
    const { id } = await client.start({ command: 'cat', stdin: 'pipe' });
    const write = (body: unknown) => client.post(`/v1/processes/${id}/stdin`, body);
    expect((await write({ text: 'ä', writeId: 'w1' })).json).toMatchObject({
      bytes: 2,
      repeated: false,
    });
    expect((await write({ text: 'ä', writeId: 'w1' })).json).toMatchObject({ repeated: true });
    expect((await write({ base64: '/wA=' })).json).toMatchObject({ bytes: 2, repeated: false });
    expect(errorOf(await write({ base64: 'no!' }))).toEqual({ status: 400, code: 'invalid_input' });
    for (const body of [{}, { text: 'a', base64: 'YQ==' }])
      expect(errorOf(await write(body))).toEqual({ status: 400, code: 'invalid_input' });
    expect((await write({ eof: true })).status).toBe(200);
    await client.post(`/v1/processes/${id}/wait`, { for: [{ kind: 'closed' }] });
    const { bytes } = await client.get(`/v1/processes/${id}/bytes`);
    expect(bytes).toEqual(Buffer.from('c3a4ff00', 'hex'));
    expect(errorOf(await write({ text: 'late' })).status).toBe(409);
  });

  it('[API6] a terminal is resized, a signal says whom it reached', async () => {
    const { id } = await client.start({
      command: 'trap "stty size; exit 5" WINCH; echo ready; while :; do sleep 0.01; done',
      streams: 'pty',
    });
    await client.post(`/v1/processes/${id}/wait`, { for: [{ kind: 'text', text: 'ready' }] });
    const size = { cols: 133, rows: 44 };
    const resized = await client.post(`/v1/processes/${id}/resize`, { size });
    const { json } = await client.post(`/v1/processes/${id}/wait`, { for: [{ kind: 'exit' }] });
    expect(json).toMatchObject({ met: [{ process: { outcome: { kind: 'exit', code: 5 } } }] });
    const { events } = (await client.get(`/v1/processes/${id}/events`)).json as {
      events: NativeEvent[];
    };
    const recorded = events.find(({ kind }) => kind === 'resize');
    expect(resized.json).toEqual({ seq: recorded?.seq });
    expect((await client.get(`/v1/processes/${id}/text`)).json).toMatchObject({
      text: expect.stringContaining('44 133') as string,
    });
    const { id: sleeper } = await client.start({ argv: ['sleep', '600'] });
    expect(errorOf(await client.post(`/v1/processes/${sleeper}/resize`, { size })).status).toBe(
      409,
    );
    const sent = await client.post(`/v1/processes/${sleeper}/signal`, {
      signal: 'terminate',
      graceMs: 5000,
    });
    expect(sent.json).toMatchObject({ survivors: [], escalated: false });
    const { json: ended } = await client.get(`/v1/processes/${sleeper}`);
    expect(ended).toMatchObject({ outcome: { kind: 'signal', signal: 'SIGTERM', by: 'api' } });
  });

  it('[API7] one process or several can be waited for, and time ends only the wait', async () => {
    const first = await client.start({ command: 'echo up; read line; exit 4', stdin: 'pipe' });
    const second = await client.start({ argv: ['sleep', '600'] });
    const one = await client.post(`/v1/processes/${first.id}/wait`, {
      for: [{ kind: 'exit' }, { kind: 'pattern', pattern: 'u.' }],
    });
    expect(one.json).toMatchObject({ timedOut: false, met: [{ index: 1, match: 'up' }] });
    const late = await client.post('/v1/wait', {
      waits: [{ id: second.id, for: [{ kind: 'exit' }] }],
      timeoutMs: 5,
    });
    expect(late.json).toEqual({ met: [], timedOut: true });
    const waits = [first, second].map(({ id }) => ({ id, for: [{ kind: 'exit' }] }));
    const any = client.post('/v1/wait', { waits });
    const all = client.post('/v1/wait', { waits, mode: 'all' });
    await client.post(`/v1/processes/${first.id}/stdin`, { text: '\n' });
    expect((await any).json).toMatchObject({ met: [{ id: first.id }] });
    await client.post(`/v1/processes/${second.id}/signal`, { signal: 'KILL' });
    expect((await all).json).toMatchObject({ met: [{ id: first.id }, { id: second.id }] });
  });

  it('[API8] output is searched, and ports are listed', async () => {
    const { id } = await client.start({
      argv: [process.execPath, program('listen.mjs')],
      stdin: 'pipe',
    });
    const { json } = await client.post(`/v1/processes/${id}/wait`, { for: [{ kind: 'port' }] });
    const { port } = (json as { met: { port: number }[] }).met[0] ?? { port: 0 };
    const { json: listed } = await client.get(`/v1/processes/${id}/ports`);
    expect(listed).toMatchObject({ ports: [{ port }] });
    await client.delete(`/v1/processes/${id}?force=true`);
    const seq = await client.run({ command: 'seq 100' });
    const query = 'pattern=%5E5.%24&context=1&limit=2&ignoreCase=true&kind=regex';
    const { json: found } = await client.get(`/v1/processes/${seq}/search?${query}`);
    expect(found).toMatchObject({
      truncated: true,
      hits: [{ line: '50', before: ['49'], after: ['51'] }, { line: '51' }],
    });
    expect(errorOf(await client.get(`/v1/processes/${seq}/search?pattern=(`))).toEqual({
      status: 400,
      code: 'pattern_invalid',
    });
  });

  it('[API9] each subscriber gets completions until it acknowledges them', async () => {
    const mine = client.with({ 'holdfast-owner': 'feed' });
    const waiting = mine.get('/v1/completions?subscriber=a&waitMs=60000&limit=10');
    const id = await mine.run({ command: 'echo done' });
    const { completions } = (await waiting).json as {
      completions: { number: number; id: string; lastLines: string }[];
    };
    expect(completions).toMatchObject([{ id, lastLines: 'done\n' }]);
    const numbers = completions.map(({ number }) => number);
    const acknowledge = () =>
      mine.post('/v1/completions/acknowledge', { subscriber: 'a', numbers });
    expect((await acknowledge()).json).toEqual({ acknowledged: 1 });
    expect((await acknowledge()).json).toEqual({ acknowledged: 0 });
    expect((await mine.get('/v1/completions?subscriber=a')).json).toEqual({ completions: [] });
    expect((await mine.get('/v1/completions?subscriber=b')).json).toMatchObject({
      completions: [{ id }],
    });
  });
});

describe('native owners', () => {
  it('[API10] the admin sees all, starts as "api", and may act as one owner', async () => {
    const own = await client.run({ command: 'true' });
    const alice = client.with({ 'holdfast-owner': 'alice' });
    const hers = await alice.run({ command: 'true' });
    expect((await client.get(`/v1/processes/${own}`)).json).toMatchObject({ owner: 'api' });
    expect((await client.get(`/v1/processes/${hers}`)).json).toMatchObject({ owner: 'alice' });
    expect((await client.get('/v1/processes?owner=alice')).json).toMatchObject({ total: 1 });
    expect(errorOf(await alice.get(`/v1/processes/${own}`)).code).toBe('not_found');
    expect(errorOf(await client.get(`/v1/processes/${own}?owner=alice`)).code).toBe('not_found');
  });

  it('[API10] an owner that cannot be one is refused', async () => {
    for (const owner of ['*', 'a%0Ab', '', 'a,b', 'x'.repeat(257)])
      expect(errorOf(await client.get(`/v1/processes?owner=${owner}`))).toEqual({
        status: 400,
        code: 'invalid_input',
      });
    expect(
      errorOf(await client.with({ 'holdfast-owner': ['a', 'b'] }).get('/v1/processes')),
    ).toEqual({ status: 403, code: 'forbidden' });
    const both = client.with({ 'holdfast-owner': 'a' });
    expect(errorOf(await both.get('/v1/processes?owner=b')).code).toBe('forbidden');
  });

  it('[API11] a scoped token acts as its owner in every operation and cannot name another', async () => {
    const bob = scoped('bob');
    const his = await bob.run({ command: 'true' });
    expect((await bob.get(`/v1/processes/${his}`)).json).toMatchObject({ owner: 'bob' });
    const foreign = await client.start({ command: 'cat', stdin: 'pipe' });
    for (const id of [foreign.id, 'unknown']) {
      const answers = await Promise.all([
        bob.get(`/v1/processes/${id}`),
        bob.delete(`/v1/processes/${id}?force=true`),
        ...['text', 'events', 'bytes', 'follow', 'ports', 'search?pattern=a'].map((view) =>
          bob.get(`/v1/processes/${id}/${view}`),
        ),
        bob.post(`/v1/processes/${id}/wait`, { for: [{ kind: 'exit' }] }),
        bob.post('/v1/wait', { waits: [{ id, for: [{ kind: 'exit' }] }] }),
        bob.post(`/v1/processes/${id}/stdin`, { text: 'x' }),
        bob.post(`/v1/processes/${id}/resize`, { size: { cols: 1, rows: 1 } }),
        bob.post(`/v1/processes/${id}/signal`, { signal: 'KILL' }),
      ]);
      const expected = answers.map(() => ({ status: 404, code: 'not_found' }));
      expect(answers.map(errorOf)).toEqual(expected);
    }
    const { json } = await bob.get('/v1/processes');
    expect(json).toMatchObject({ total: 1, processes: [{ id: his }] });
    for (const named of [
      bob.with({ 'holdfast-owner': 'api' }),
      bob.with({ 'holdfast-owner': '*' }),
    ])
      expect(errorOf(await named.get('/v1/processes'))).toEqual({ status: 403, code: 'forbidden' });
    expect(errorOf(await bob.get('/v1/processes?owner=api')).code).toBe('forbidden');
    expect((await bob.with({ 'holdfast-owner': 'bob' }).get('/v1/processes')).status).toBe(200);
    expect(await client.get(`/v1/processes/${foreign.id}`)).toMatchObject({
      json: { state: 'running' },
    });
    await client.delete(`/v1/processes/${foreign.id}?force=true`);
  });

  it('[API11] a scoped token learns nothing of others from health or metrics', async () => {
    const carol = scoped('carol');
    const { json } = await carol.get('/v1/health');
    expect(Object.keys(json).sort()).toEqual(['children', 'uptimeMs', 'version']);
    expect((await client.get('/v1/health')).json).toMatchObject({ live: 0, parkedWaits: 0 });
    expect(errorOf(await carol.get('/metrics'))).toEqual({ status: 403, code: 'forbidden' });
    expect((await carol.get('/v1/completions')).json).toEqual({ completions: [] });
  });
});

describe('native owners and limits', () => {
  it('[SV11] the admin sees all owners, a scoped token only its own', async () => {
    const dora = scoped('dora');
    await dora.run({ command: 'echo 12345' });
    const { id } = await dora.start({ command: 'exec sleep 600' });
    const mine = { owner: 'dora', live: 1, ended: 1, bytes: 6 };
    expect((await dora.get('/v1/owners')).json).toEqual({ owners: [mine] });
    const { owners } = (await client.get('/v1/owners')).json as { owners: { owner: string }[] };
    expect(owners).toContainEqual(mine);
    const names = owners.map(({ owner }) => owner);
    expect(names).toEqual([...names].sort());
    expect(names.length).toBeGreaterThan(1);
    await dora.delete(`/v1/processes/${id}?force=true`);
  });

  it('[SV11] every bound in force can be read', async () => {
    const { json } = await scoped('emil').get('/v1/limits');
    expect(json).toEqual({
      host: expect.objectContaining({ ...defaultLimits }),
      server: { maxBodyBytes: 1024 * 1024, startsPerSecond: 50, startsAtOnce: 200 },
      enforcement: expect.objectContaining({ cpuSeconds: { by: 'rlimit' } }),
    });
  });

  it('[FL30] the hosts of a fleet are none where one keeper is served, and for the admin token', async () => {
    expect((await client.get('/v1/hosts')).json).toEqual({ hosts: [] });
    expect((await scoped('emil').get('/v1/hosts')).status).toBe(403);
  });
});

describe('native input', () => {
  it('[SV12] unknown fields are refused at every depth, with their place', async () => {
    const { id } = await client.start({ command: 'exec sleep 600' });
    const cases: [string, unknown, string][] = [
      ['/v1/processes', { command: ':', environment: { inherits: 'all' } }, 'environment.inherits'],
      ['/v1/processes', { command: ':', size: { cols: 1, rows: 1, x: 1 } }, 'size.x'],
      [`/v1/processes/${id}/resize`, { size: { cols: 1, rows: 1, width: 1 } }, 'size.width'],
      [`/v1/processes/${id}/wait`, { for: [{ kind: 'exit', code: 0 }] }, 'for.0.code'],
      ['/v1/wait', { waits: [{ id, for: [{ kind: 'exit' }], any: true }] }, 'waits.0.any'],
    ];
    for (const [path, body, field] of cases) {
      const { status, json } = await client.post(path, body);
      expect({ path, status, error: json }).toMatchObject({
        status: 400,
        error: { error: { code: 'invalid_input', details: { field } } },
      });
    }
    // Names of variables and labels are the caller's own.
    const free = { command: ':', env: { ANY: 'x' }, labels: { any: 'y' } };
    expect((await client.post('/v1/processes', free)).status).toBe(200);
    await client.delete(`/v1/processes/${id}?force=true`);
  });

  it('[API12] what is not as the row says is refused with the name of the field', async () => {
    const cases: [string, string, unknown, string][] = [
      ['GET', '/v1/processes?limit=0', undefined, 'limit'],
      ['GET', '/v1/processes?limit=1e3', undefined, 'limit'],
      ['GET', '/v1/processes?limit=1&limit=2', undefined, 'limit'],
      ['GET', '/v1/processes?state=dead', undefined, 'state'],
      ['GET', '/v1/processes?nmae=x', undefined, 'nmae'],
      ['GET', '/v1/processes/x/text?clean=yes', undefined, 'clean'],
      ['GET', '/v1/processes/x/events?after=-1', undefined, 'after'],
      ['GET', '/v1/processes/x/search', undefined, 'pattern'],
      ['POST', '/v1/processes', { command: 'true', comand: 'x' }, 'comand'],
      ['POST', '/v1/processes', { command: 7 }, 'command'],
      ['POST', '/v1/processes/x/wait', { for: [] }, 'for'],
      ['POST', '/v1/processes/x/wait', { for: [{ kind: 'text' }] }, 'for.0.text'],
      ['POST', '/v1/processes/x/signal', {}, 'signal'],
    ];
    for (const [method, path, body, field] of cases) {
      const reply = await client.call(method, path, { body });
      expect(reply.json, `${method} ${path}`).toMatchObject({
        error: { code: 'invalid_input', details: { field } },
      });
      expect(reply.status).toBe(400);
    }
    const follow = await client.with({ 'last-event-id': 'one' }).get('/v1/processes/x/follow');
    expect(errorOf(follow)).toEqual({ status: 400, code: 'invalid_input' });
  });

  it('[API13] a body that is not JSON, not UTF-8, or nested too deep is refused without being repeated', async () => {
    const deep = (levels: number): string =>
      `{"command":"true","labels":${'['.repeat(levels)}${']'.repeat(levels)}}`;
    const bodies = ['{"command":"s3cret"', '[]', 'null', deep(64), deep(9000)];
    for (const raw of [...bodies, Buffer.from([0x22, 0xff, 0x22])]) {
      const reply = await client.call('POST', '/v1/processes', { raw });
      expect(errorOf(reply)).toEqual({ status: 400, code: 'invalid_input' });
      expect(reply.bytes.toString()).not.toContain('s3cret');
    }
    expect((await client.call('POST', '/v1/processes', { raw: deep(64) })).json).toMatchObject({
      error: { message: expect.stringContaining('64 levels') as string },
    });
    // Counted before anything is parsed.
    const endless = await client.call('POST', '/v1/processes', { raw: deep(100_000) });
    expect(errorOf(endless)).toEqual({ status: 413, code: 'too_large' });
    const brackets = JSON.stringify({ command: `: '${'['.repeat(200)}"\\'` });
    expect((await client.call('POST', '/v1/processes', { raw: brackets })).status).toBe(200);
  });

  it('[API14] errors of the table arrive as such, and a wrong path or method says so', async () => {
    expect(
      errorOf(await client.post('/v1/processes', { command: 'true', cwd: '/no/such' })),
    ).toEqual({ status: 422, code: 'cwd_not_found' });
    expect(errorOf(await client.get('/v1/nothing'))).toEqual({ status: 404, code: 'no_route' });
    const wrong = await client.delete('/v1/processes');
    expect(errorOf(wrong)).toEqual({ status: 405, code: 'method_not_allowed' });
    expect(wrong.headers['allow']).toBe('POST, GET');
  });

  it('[API15] starts beyond the rate are refused per token, with the time to come back', async () => {
    const slow = await serve({ startRate: { perSecond: 0.1, burst: 3 } });
    try {
      const admin = NativeClient.of(slow);
      const replies = [];
      for (let index = 0; index < 4; index += 1)
        replies.push(await admin.post('/v1/processes', { command: 'true' }));
      expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
      expect(errorOf(replies[3] ?? { status: 0, json: {} }).code).toBe('limit_reached');
      const seconds = Number(replies[3]?.headers['retry-after']);
      expect(seconds).toBeGreaterThan(0);
      expect(seconds).toBeLessThanOrEqual(10);
      const other = admin.with({ authorization: `Bearer ${slow.tokens.create('other').token}` });
      expect((await other.post('/v1/processes', { command: 'true' })).status).toBe(200);
      expect((await admin.get('/v1/processes')).status).toBe(200);
    } finally {
      await slow.stop();
    }
  });

  it('[API15] starts that come a little too soon wait for their turn, in order', async () => {
    const clock = new FakeClock();
    const rate = new StartRate(clock, { perSecond: 10, burst: 2 });
    const admitted: number[] = [];
    const caller = { tokenId: 't', admin: false };
    const all = Array.from({ length: 52 }, async (_, index) => {
      await rate.admit(caller);
      admitted.push(index);
    });
    await expect(rate.admit(caller)).rejects.toMatchObject({
      code: 'limit_reached',
      details: { retryAfterMs: 100 },
    });
    await Promise.all(all.slice(0, 2));
    expect(admitted).toEqual([0, 1]);
    clock.advance(100);
    await all[2];
    expect(admitted).toEqual([0, 1, 2]);
    clock.advance(5000);
    await Promise.all(all);
    expect(admitted).toEqual(Array.from({ length: 52 }, (_, index) => index));
  });

  it('[API15] time fills the bucket again, up to its size', () => {
    const clock = new FakeClock();
    const rate = new StartRate(clock);
    const taken = (): number => {
      for (let count = 0; ; count += 1) {
        try {
          rate.take({ tokenId: 't', admin: false });
        } catch (error) {
          expect((error as HoldfastError).details).toEqual({ retryAfterMs: 20 });
          return count;
        }
      }
    };
    expect(taken()).toBe(200);
    clock.advance(1000);
    expect(taken()).toBe(50);
    clock.advance(3_600_000);
    expect(taken()).toBe(200);
  });
});

describe('native figures', () => {
  it('[API16] metrics are for the admin, in the form Prometheus reads, with routes and codes of our tables only', async () => {
    await client.get('/v1/health');
    await client.get('/v1/processes/nobody');
    await client.get('/v1/%22%0Aevil/x');
    const { headers, bytes } = await client.get('/metrics');
    expect(headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/);
    const lines = bytes.toString().trimEnd().split('\n');
    const sample =
      /^holdfast_[a-z_]+(\{[a-z]+="[^"\n]*"(,[a-z]+="[^"\n]*")*\})? \d+(\.\d+)?(e-\d+)?$/;
    for (const line of lines)
      expect(line).toMatch(line.startsWith('#') ? /^# (HELP|TYPE) / : sample);
    const text = lines.join('\n');
    for (const name of [
      'processes_live',
      'processes_ended',
      'processes_degraded',
      'waits_parked',
      'journal_bytes',
      'keeper_resident_memory_bytes',
      'server_resident_memory_bytes',
    ])
      expect(text).toMatch(new RegExp(`^holdfast_${name} \\d+$`, 'm'));
    expect(text).toMatch(/^holdfast_requests_total\{route="GET \/v1\/health",status="200"\} \d+$/m);
    expect(text).toMatch(
      /^holdfast_requests_total\{route="GET \/v1\/processes\/:id",status="404"\} \d+$/m,
    );
    expect(text).toMatch(/^holdfast_refusals_total\{code="not_found"\} \d+$/m);
    expect(text).not.toContain('evil');
  });

  it('[API32] metrics say what ended processes have used, and how many met a limit', async () => {
    const command = `perl -e '1 while (times)[0] < 0.1'; head -c 100k /dev/zero > ${temporaryFolder()}/file`;
    const { id } = await client.start({ command, limits: { fileBytes: 4096 } });
    // It is counted when nothing of it is left.
    await client.post(`/v1/processes/${id}/wait`, { for: [{ kind: 'settled' }] });
    const text = (await client.get('/metrics')).bytes.toString();
    const seconds = /^holdfast_processes_cpu_seconds_total\{mode="user"\} ([\d.]+)$/m.exec(
      text,
    )?.[1];
    expect(Number(seconds)).toBeGreaterThanOrEqual(0.09);
    expect(text).toMatch(/^holdfast_processes_storage_bytes_total\{direction="written"\} \d+$/m);
    expect(text).toMatch(/^holdfast_processes_limited_total\{limit="file_bytes"\} 1$/m);
  });

  it('[API70] a lease is opened, renewed and ended by its owner, and ends what was started under it', async () => {
    const [bob, carol] = [scoped('bob'), scoped('carol')];
    const leased = { argv: ['sleep', '600'], lease: 'l' };
    expect(errorOf(await bob.post('/v1/processes', leased))).toEqual({
      status: 409,
      code: 'lease_ended',
    });
    for (const ttlMs of [30_000, 60_000])
      expect((await bob.post('/v1/leases/l', { ttlMs })).json).toEqual({});
    const { id, lease } = await bob.start(leased);
    expect(lease).toBe('l');
    const opened = await bob.post('/v1/terminals', leased);
    expect(opened.json).toMatchObject({ process: { lease: 'l' } });
    expect(errorOf(await carol.post('/v1/processes', leased)).code).toBe('lease_ended');
    expect((await carol.delete('/v1/leases/l')).json).toEqual({});
    expect((await bob.get(`/v1/processes/${id}`)).json).toMatchObject({ state: 'running' });
    expect((await bob.delete('/v1/leases/l')).json).toEqual({});
    const { process } = (opened as { json: { process: ProcessInfo } }).json;
    for (const each of [id, process.id])
      expect((await bob.post(`/v1/processes/${each}/wait`, {})).json).toMatchObject({
        met: [{ process: { outcome: { by: 'lease ended' } } }],
      });
    for (const [path, body] of [
      ['/v1/leases/no.such', { ttlMs: 1 }],
      ['/v1/leases/l', { ttlMs: 90_000_000 }],
      ['/v1/leases/l', {}],
    ] as const)
      expect(errorOf(await bob.post(path, body)).code).toBe('invalid_input');
  });

  it('[API17] what a process was started with is not in any answer but where it belongs', async () => {
    const secret = 'canary-5f2d';
    const { id } = await client.start({ command: 'true', env: { CANARY: secret } });
    await client.post(`/v1/processes/${id}/wait`, { for: [{ kind: 'closed' }] });
    const paths = ['', '/events', '/text'].map((view) => `/v1/processes/${id}${view}`);
    for (const path of [...paths, '/v1/processes', '/v1/completions', '/metrics', '/v1/health'])
      expect((await client.get(path)).bytes.toString()).not.toContain(secret);
    const refused = await client.post('/v1/processes', { command: '', env: { CANARY: secret } });
    expect(refused.bytes.toString()).not.toContain(secret);
  });

  it('[DB9] changes of the list are answered as described', async () => {
    const { json } = await client.get('/v1/changes?limit=10000');
    const { epoch, version } = json as { epoch: string; version: number };
    const next = await client.get(`/v1/changes?epoch=${epoch}&after=${version}`);
    expect(next.json).toMatchObject({ epoch, reset: false });
  });

  it('[DB4] sessions of pages are answered as described', async () => {
    const { json: made } = await client.post('/v1/sessions/codes');
    const { code } = made as { code: string };
    const { json: opened } = await client.post('/v1/sessions', { code });
    const { id } = (opened as { session: { id: string } }).session;
    expect((await client.get('/v1/sessions')).json).toMatchObject({ sessions: [{ id }] });
    expect((await client.delete(`/v1/sessions/${id}`)).json).toEqual({});
  });

  it('[DB31] tokens are listed and revoked as described', async () => {
    const { id, owner, expiresAtMs } = served.tokens.create('listed', 60_000).info;
    const { json } = await client.get('/v1/tokens');
    const listed = expect.objectContaining({ id, owner, expiresAtMs }) as unknown;
    expect(json).toMatchObject({ tokens: expect.arrayContaining([listed]) as unknown });
    expect((await client.delete(`/v1/tokens/${id}`)).json).toEqual({});
  });

  it('[DB29] [H106] the living processes of a start are answered as described', async () => {
    const { id } = await client.start({ command: 'sleep 1001 & echo up; wait' });
    await client.post(`/v1/processes/${id}/wait`, { for: [{ kind: 'text', text: 'up' }] });
    expect((await client.get(`/v1/processes/${id}/tree`)).json).toMatchObject({ total: 2 });
    await client.post(`/v1/processes/${id}/signal`, { signal: 'kill' });
  });

  it('[DB22] what a person looks at, the course of a process and links to it are answered as described', async () => {
    const { id } = await client.start({ command: 'echo one; echo two' });
    await client.post(`/v1/processes/${id}/wait`, { for: [{ kind: 'closed' }] });
    const { json: course } = await client.get(`/v1/processes/${id}/timeline?points=2`);
    expect((course as { points: { seq: number }[] }).points[0]).toMatchObject({ seq: 1 });
    expect((await client.get(`/v1/processes/${id}/at?offset=0`)).json).toMatchObject({ offset: 0 });
    const { json: shared } = await client.post(`/v1/processes/${id}/share`, { forMs: 60_000 });
    expect(shared).toMatchObject({ session: { only: [id] } });
    expect((await client.get('/v1/attention')).json).toMatchObject({ needs: [] });
    expect((await client.post(`/v1/processes/${id}/dismiss`)).json).toEqual({});
  });

  it('[API18] every operation that answers JSON was answered in this file as its description says', () => {
    const described = Object.entries<NativeOperation>(nativeOperations)
      .filter(([, { answer, path }]) => answer !== undefined && !path.startsWith('/v1/terminals'))
      .map(([name]) => name);
    expect(described.filter((name) => !answered.has(name))).toEqual([]);
    expect(served.reports).toEqual([]);
  });
});

describe('native bytes', () => {
  it('[API19] the download is the output, byte for byte, as a file nobody renders', async () => {
    const source = 'for (let i = 0; i < 40; i++) process.stdout.write(Buffer.alloc(50000, i * 7))';
    const id = await client.run({ argv: [process.execPath, '-e', source] });
    const expected = Buffer.concat(
      Array.from({ length: 40 }, (_each, index) => Buffer.alloc(50_000, index * 7)),
    );
    const { bytes, headers, trailers } = await client.get(`/v1/processes/${id}/bytes`);
    expect(bytes.equals(expected)).toBe(true);
    expect(headers).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-disposition': `attachment; filename="${id}.out"`,
      'x-content-type-options': 'nosniff',
      'holdfast-total-bytes': '2000000',
      'holdfast-missed-bytes': '0',
    });
    expect(trailers).toEqual({ 'holdfast-skipped-bytes': '0' });
    const tail = await client.get(`/v1/processes/${id}/bytes?offset=1999990`);
    expect(tail.bytes.equals(expected.subarray(1_999_990))).toBe(true);
    const middle = await client.get(`/v1/processes/${id}/bytes?offset=49999&maxBytes=2`);
    expect(middle.bytes).toEqual(Buffer.from([0, 7]));
    expect(middle.headers).toMatchObject({ 'content-length': '2', 'holdfast-end': 'false' });
    const behind = await client.get(`/v1/processes/${id}/bytes?offset=5000000`);
    expect(behind.bytes.length).toBe(0);
    const { json } = await client.get(`/v1/processes/${id}/events?maxBytes=4000000`);
    expect(outputOf((json as { events: NativeEvent[] }).events).equals(expected)).toBe(true);
  });
});
