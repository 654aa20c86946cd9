// The coder dialect through real HTTP: every check of the contract's black-box list about starting, listing, reading,
// signalling, chats, buffers and keys. Where we differ on purpose, the test says ours; docs/wire/coder.md says why.

import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AccessEntry } from '../../src/server/http/request-context.ts';
import {
  PREFIX,
  serve,
  type CoderClient,
  type ListedProcess,
  type Served,
} from '../support/coder-client.ts';
import { gate, onCleanup, temporaryFolder } from '../support/hosts.ts';
import { turnsUntil } from '../support/recorder.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const NIL = '00000000-0000-0000-0000-000000000000';
const accesses: AccessEntry[] = [];
let shared: Served;
let client: CoderClient;
let configured: string;

beforeAll(async () => {
  configured = mkdtempSync(join(tmpdir(), 'holdfast-wire-dir-'));
  shared = await serve({
    defaultDirectory: configured,
    env: { ...process.env, FROM_THE_HOST: 'injected' },
    access: (entry) => accesses.push(entry),
  });
  ({ client } = shared);
});

afterAll(async () => {
  await shared.stop();
  rmSync(configured, { recursive: true, force: true });
  if (shared.reports.length > 0) throw new Error(shared.reports.join('\n'));
});

/** A server that has started nothing yet, gone after the test. */
async function fresh(options: Parameters<typeof serve>[0] = {}): Promise<Served> {
  const served = await serve(options);
  onCleanup(() => served.stop());
  return served;
}

function seconds(): number {
  return Math.floor(Date.now() / 1000);
}

function alive(pid: number): boolean {
  return existsSync(`/proc/${pid}`);
}

/** Lines of 64 bytes: none is long, so only the sizes decide. */
function shortLines(bytes: number): string {
  let text = '';
  for (let n = 0; text.length < bytes; n += 1) text += `${String(n).padStart(63, '.')}\n`;
  return text.slice(0, bytes);
}

/** A command that prints exactly this. */
function printing(text: string): string {
  const path = join(temporaryFolder(), 'text');
  writeFileSync(path, text);
  return `cat ${path}`;
}

describe('start', () => {
  it('[W1] checks 1–2: a command is started and has an id; "background" changes nothing', async () => {
    const before = seconds();
    for (const body of [
      { command: 'echo hello' },
      { command: 'echo hello', background: true },
      { command: 'echo hello', background: false, unknown_field: [1] },
    ]) {
      const answer = await client.call('POST', '/start', body);
      expect(answer.status).toBe(200);
      expect(answer.body).toMatchObject({ started: true });
      expect(answer.body['id']).toMatch(UUID);
      expect(answer.body['started_at']).toBeGreaterThanOrEqual(before);
      expect(answer.body['started_at']).toBeLessThanOrEqual(seconds());
      expect(answer.body).not.toHaveProperty('attached');
      expect(answer.body).not.toHaveProperty('idempotency_key');
    }
  });

  it('[W1] checks 3–4: an empty command and a body that is no JSON are refused in the peer’s words', async () => {
    for (const body of [{ command: '' }, {}, { command: null }, null, 'null', 'null and more'])
      expect(await client.call('POST', '/start', body)).toEqual({
        status: 400,
        body: { message: 'Command is required.' },
      });
    for (const body of [
      '{invalid json',
      '{"command":"x"',
      '"text"',
      '[]',
      '7',
      { command: 7 },
      { command: 'x', workdir: 1 },
      { command: 'x', background: 'yes' },
      { command: 'x', env: [] },
      { command: 'x', env: { A: 1 } },
    ]) {
      const answer = await client.call('POST', '/start', body);
      expect(answer).toMatchObject({
        status: 400,
        body: { message: 'Request body must be valid JSON.', detail: expect.any(String) },
      });
    }
    for (const body of ['', '  \n'])
      expect(await client.call('POST', '/start', body)).toEqual({
        status: 400,
        body: { message: 'Request body must be valid JSON.', detail: 'EOF' },
      });
  });

  it('[W1] a command of blanks only is a command', async () => {
    expect(await client.run('  ')).toMatchObject({ running: false, exit_code: 0, output: '' });
  });

  it('[W2] checks 5–6: it runs in its directory, which the list shows; without one, at home', async () => {
    const folder = temporaryFolder();
    const made = await client.run({ command: 'touch made; ls', workdir: folder });
    expect(made).toMatchObject({ exit_code: 0, output: 'made\n' });
    expect(readdirSync(folder)).toEqual(['made']);
    const { client: plain } = await fresh();
    const id = await plain.start('pwd');
    expect((await plain.wait(id)).output).toBe(`${homedir()}\n`);
    expect(await plain.list()).toMatchObject([{ id, workdir: homedir() }]);
  });

  it('[W2] checks 7–9: a configured directory is used if it exists, otherwise the home in force', async () => {
    expect((await client.run('pwd')).output).toBe(`${configured}\n`);
    expect((await client.run({ command: 'pwd', workdir: '/' })).output).toBe('/\n');
    const home = temporaryFolder();
    const { client: other } = await fresh({
      defaultDirectory: '/no/such/place',
      env: { ...process.env, HOME: home },
    });
    expect(await other.run('pwd')).toMatchObject({ exit_code: 0, output: `${home}\n` });
    expect((await other.run({ command: 'pwd', workdir: '~' })).output).toBe(`${home}\n`);
  });

  it('[W3] checks 10–12: variables of the host are there, the request’s go before them', async () => {
    expect(await client.run({ command: 'printenv K', env: { K: 'V' } })).toMatchObject({
      exit_code: 0,
      output: 'V\n',
    });
    expect((await client.run('printenv FROM_THE_HOST')).output).toBe('injected\n');
    const env = { FROM_THE_HOST: 'asked', EMPTY: null };
    expect((await client.run({ command: 'echo $FROM_THE_HOST-${EMPTY-unset}-', env })).output).toBe(
      'asked--\n',
    );
  });

  it('[W3] the chat is in CODER_CHAT_ID, whatever the request says, and nowhere without one', async () => {
    const chat = randomUUID();
    const spoofed = { command: 'echo ${CODER_CHAT_ID-none}', env: { CODER_CHAT_ID: 'other' } };
    expect((await shared.chat(chat).run(spoofed)).output).toBe(`${chat}\n`);
    expect((await client.run('echo ${CODER_CHAT_ID-none}')).output).toBe('none\n');
  });

  it('[W4] a start that fails is 500 with the true reason, and leaves nothing', async () => {
    const chat = shared.chat(randomUUID());
    const file = join(temporaryFolder(), 'file');
    writeFileSync(file, '');
    const cases = [
      [{ command: 'true', workdir: '/no/such/dir' }, /\/no\/such\/dir does not exist/],
      [{ command: 'true', workdir: file }, /not a directory/],
      [{ command: 'a\0b' }, /NUL/],
      [{ command: 'true', env: { A: 'b\0' } }, /NUL/],
      [{ command: 'true', env: { PATH: '/nowhere' } }, /"sh" is in no folder of its PATH/],
      [{ command: `: ${'x'.repeat(140_000)}` }, /too long|131/],
    ] as const;
    for (const [body, reason] of cases) {
      const answer = await chat.call('POST', '/start', body);
      expect(answer).toMatchObject({ status: 500, body: { message: 'Failed to start process.' } });
      expect(answer.body['detail']).toMatch(/^start process: /);
      expect(answer.body['detail']).toMatch(reason);
    }
    expect(await chat.list()).toEqual([]);
  });

  it('[W4] stdin is at its end, there is no terminal, and the group is its own', async () => {
    const { output } = await client.run(
      'cat; test -t 0 || test -t 1 || echo no tty; ps -o pid=,pgid= -p $$',
    );
    const [first, group = ''] = output.split('\n');
    expect(first).toBe('no tty');
    const [pid, pgid] = group.trim().split(/\s+/);
    expect(pid).toBe(pgid);
  });
});

describe('list', () => {
  it('[W5] check 13: an empty list is an array', async () => {
    const { client: empty } = await fresh();
    expect(await empty.call('GET', '/list')).toEqual({
      status: 200,
      body: { processes: [], total: 0 },
    });
  });

  it('[W5] checks 14–15: a chat sees its own, nobody sees all', async () => {
    const served = await fresh();
    const [a, b] = [served.chat(randomUUID()), served.chat(randomUUID())];
    const ids = [await a.start('true'), await a.start('true'), await b.start('true')];
    const idsOf = async (caller: CoderClient): Promise<string[]> =>
      (await caller.list()).map(({ id }) => id).toSorted();
    expect(await idsOf(a)).toEqual(ids.slice(0, 2).toSorted());
    expect(await idsOf(b)).toEqual([ids[2]]);
    expect(await idsOf(served.chat(randomUUID()))).toEqual([]);
    expect(await idsOf(served.client)).toEqual(ids.toSorted());
  });

  it('[W5] check 16: ten at most, newest first; more with "limit", and always the total', async () => {
    const chat = shared.chat(randomUUID());
    const ids: string[] = [];
    for (let n = 0; n < 12; n += 1) {
      ids.push(await chat.start('true'));
      await chat.wait(ids[n] ?? '');
    }
    const newest = ids.toReversed();
    const answer = await chat.call<{ processes: ListedProcess[]; total: number }>('GET', '/list');
    expect(answer.body.processes.map(({ id }) => id)).toEqual(newest.slice(0, 10));
    expect(answer.body.total).toBe(12);
    const times = answer.body.processes.map((process) => process.started_at_unix);
    expect(times).toEqual(times.toSorted((x, y) => y - x));
    expect((await chat.list('?limit=12')).map(({ id }) => id)).toEqual(newest);
    expect((await chat.list('?limit=3')).map(({ id }) => id)).toEqual(newest.slice(0, 3));
    for (const odd of ['0', '-1', 'x', '', '1.5'])
      expect(await chat.list(`?limit=${odd}`)).toHaveLength(10);
  });

  it('[W5] checks 17–18: running ones first, with the fields that tell them apart', async () => {
    const chat = shared.chat(randomUUID());
    const hold = gate();
    const running = await chat.start({ command: hold.wait, background: true, workdir: '/' });
    const exited = await chat.start('exit 7');
    await chat.wait(exited);
    const [first, second] = await chat.list();
    expect(first).toMatchObject({
      id: running,
      command: hold.wait,
      workdir: '/',
      background: true,
      running: true,
    });
    expect(first).not.toHaveProperty('exit_code');
    expect(first).not.toHaveProperty('exited_at_unix');
    expect(second).toMatchObject({ id: exited, background: false, running: false, exit_code: 7 });
    expect(second?.exited_at_unix).toBeGreaterThanOrEqual(second?.started_at_unix ?? Infinity);
    expect(second?.exited_at_unix).toBeLessThanOrEqual(seconds());
    hold.open();
    await chat.wait(running);
  });

  it('[W6] check 19: the access log names the chat and its ancestors, never a token or a query', async () => {
    const [chat, parent] = [randomUUID(), randomUUID()];
    const path = (name: string): string => `${PREFIX}/${name}/output`;
    await shared.chat(chat, JSON.stringify([parent])).call('GET', '/a-1/output?wait=true&x=1');
    await shared.chat(chat, 'null').call('GET', '/a-2/output');
    await client.call('GET', '/a-3/output');
    await client.with({ authorization: 'Bearer wrong' }).call('GET', '/a-4/output');
    await turnsUntil(() => accesses.some((entry) => entry.path === path('a-4')));
    const [full, chatOnly, none, refused] = ['a-1', 'a-2', 'a-3', 'a-4'].map((name) =>
      accesses.find((entry) => entry.path === path(name)),
    );
    expect(full).toEqual({
      method: 'GET',
      path: path('a-1'),
      status: 404,
      ms: expect.any(Number),
      route: `GET ${PREFIX}/:id/output`,
      tokenId: 'admin',
      chatId: chat,
      ancestorChatIds: [parent],
      refusal: expect.any(String),
    });
    expect(chatOnly).toMatchObject({ chatId: chat });
    expect(chatOnly).not.toHaveProperty('ancestorChatIds');
    expect(none).toMatchObject({ tokenId: 'admin' });
    expect(none).not.toHaveProperty('chatId');
    expect(refused).toEqual({
      method: 'GET',
      path: path('a-4'),
      status: 401,
      ms: expect.any(Number),
      refusal: 'unauthorized',
    });
    expect(JSON.stringify(accesses)).not.toContain(shared.token);
  });
});

describe('output', () => {
  it('[W7] checks 20, 22, 29–30, 32: the output of both streams, the command, the exit code', async () => {
    expect(await client.run('echo x')).toMatchObject({
      output: 'x\n',
      running: false,
      exit_code: 0,
      command: 'echo x',
      settled: expect.any(Boolean),
      streams_open: false,
    });
    expect(await client.run('exit 42')).toMatchObject({ exit_code: 42 });
    expect((await client.run('echo a; echo b >&2; echo c')).output).toBe('a\nb\nc\n');
  });

  it('[W7] check 21: a snapshot of a running one has no exit code and what there is so far', async () => {
    const id = await client.start('echo early; sleep 300');
    await shared.server.host.wait('*', { waits: [{ id, for: [{ kind: 'text', text: 'early' }] }] });
    const seen = await client.output(id);
    expect(seen).toMatchObject({ running: true, output: 'early\n', command: expect.any(String) });
    expect(seen).not.toHaveProperty('exit_code');
    expect(seen).not.toHaveProperty('truncated');
    await client.signal(id, 'kill');
  });

  it('[W7] check 23: an unknown id is not found, quoted as Go quotes it, percent-decoded', async () => {
    for (const [path, quoted] of [
      ['nope', '"nope"'],
      ['a%20b', '"a b"'],
      ['%22%5C%5Cu0041', '"\\"\\\\\\\\u0041"'],
      ['%07%0b%7f%01', '"\\a\\v\\x7f\\x01"'],
      ['%C2%85%E2%80%A8%C3%BC%F0%9F%98%80', '"\\u0085\\u2028ü😀"'],
      ['%3Cb%3E', '"<b>"'],
    ] as const) {
      const answer = await client.call('GET', `/${path}/output`);
      expect(answer).toEqual({ status: 404, body: { message: `Process ${quoted} not found.` } });
    }
    const { text } = await client.send('GET', `${PREFIX}/%3Cb%3E/output`);
    expect(text).toBe('{"message":"Process \\"\\u003cb\\u003e\\" not found."}\n');
  });

  it('[W8] checks 25–26: wait=true answers after the exit with everything, and at once when it is over', async () => {
    const hold = gate();
    const id = await client.start(`echo before; ${hold.wait}; echo after`);
    let answered = false;
    const waiting = client.wait(id).then((value) => {
      answered = true;
      return value;
    });
    // Output does not wake it: a client that is answered early asks again at once, for ever.
    await shared.server.host.wait('*', {
      waits: [{ id, for: [{ kind: 'text', text: 'before' }] }],
    });
    expect((await client.output(id)).output).toBe('before\n');
    expect(answered).toBe(false);
    hold.open();
    expect(await waiting).toMatchObject({
      running: false,
      exit_code: 0,
      output: 'before\nafter\n',
    });
    expect(await client.wait(id)).toMatchObject({ running: false, output: 'before\nafter\n' });
  });

  it('[W8] only "wait=true", in these letters, waits', async () => {
    const id = await client.start('sleep 300');
    for (const query of ['?wait=1', '?wait=TRUE', '?wait=True', '?wait=', '?wait', '?Wait=true'])
      expect(await client.output(id, query)).toMatchObject({ running: true });
    expect((await client.call('GET', `/${id}/output?wait=false`)).status).toBe(200);
    await client.signal(id, 'kill');
  });

  it('[W8] check 27: a client that stops waiting leaves no waiter, and the process goes on', async () => {
    const { client: alone, server } = await fresh();
    const id = await alone.start('sleep 300');
    const giveUp = new AbortController();
    const path = `${PREFIX}/${id}/output?wait=true`;
    let answered = false;
    const waiting = alone
      .send('GET', path, undefined, giveUp.signal)
      .catch(() => 'gone')
      .finally(() => (answered = true));
    const parked = async (): Promise<number> => (await server.host.health('*', {})).parkedWaits;
    // The answer would come before the waiter only if it did not wait.
    while ((await parked()) !== 1) expect(answered).toBe(false);
    giveUp.abort();
    expect(await waiting).toBe('gone');
    while ((await parked()) !== 0);
    expect(await alone.output(id)).toMatchObject({ running: true });
  });

  it('[W8] check 28: any number of waiters are answered by one end', async () => {
    const id = await client.start('sleep 300');
    const waiting = Array.from({ length: 20 }, () => client.wait(id));
    expect((await client.signal(id, 'kill')).status).toBe(200);
    for (const answer of await Promise.all(waiting))
      expect(answer).toMatchObject({ running: false, exit_code: -1 });
  });
});

describe('signal', () => {
  it('[W9] checks 33–34: kill and terminate end it; -1 is the code, the truth stands beside it', async () => {
    for (const [name, signal] of [
      ['kill', 'SIGKILL'],
      ['terminate', 'SIGTERM'],
    ] as const) {
      const id = await client.start('sleep 300');
      expect(await client.signal(id, name)).toEqual({
        status: 200,
        message: `Signal "${name}" sent to process "${id}".`,
      });
      expect(await client.wait(id)).toMatchObject({
        running: false,
        exit_code: -1,
        outcome: { kind: 'signal', signal, by: 'coder api' },
      });
    }
  });

  it('[W9] terminate can be caught, and then the code is the program’s own', async () => {
    const id = await client.start('trap "exit 5" TERM; echo ready; while :; do sleep 0.05; done');
    await shared.server.host.wait('*', { waits: [{ id, for: [{ kind: 'text', text: 'ready' }] }] });
    expect((await client.signal(id, 'terminate')).status).toBe(200);
    expect(await client.wait(id)).toMatchObject({ exit_code: 5 });
  });

  it('[W9] checks 35–38: unknown, ended, empty and unsupported are distinguished', async () => {
    expect(await client.signal('nope', 'kill')).toEqual({
      status: 404,
      message: 'Process "nope" not found.',
    });
    const ended = await client.start('true');
    await client.wait(ended);
    expect(await client.signal(ended, 'kill')).toEqual({
      status: 409,
      message: `Process "${ended}" is not running.`,
    });
    for (const empty of ['', null, undefined])
      expect(await client.signal(ended, empty)).toEqual({
        status: 400,
        message: 'Signal is required.',
      });
    for (const odd of ['SIGFOO', 'KILL', 'Terminate', 'a"b<'])
      expect(await client.signal(ended, odd)).toEqual({
        status: 400,
        message: `Unsupported signal ${JSON.stringify(odd)}. Use "kill" or "terminate".`,
      });
  });

  it('[W9] a foreign process is not found whatever the body; an unknown one only after the body made sense', async () => {
    const mine = await shared.chat(randomUUID()).start('sleep 300');
    const other = shared.chat(randomUUID());
    for (const body of ['{nonsense', '', { signal: '' }, { signal: 'SIGFOO' }, { signal: 'kill' }])
      expect(await other.call('POST', `/${mine}/signal`, body)).toEqual({
        status: 404,
        body: { message: `Process "${mine}" not found.` },
      });
    const unknown = randomUUID();
    const answers = [];
    for (const body of ['{nonsense', { signal: '' }, { signal: 'SIGFOO' }, { signal: 'kill' }])
      answers.push((await other.call('POST', `/${unknown}/signal`, body)).status);
    expect(answers).toEqual([400, 400, 400, 404]);
    expect(await client.output(mine)).toMatchObject({ running: true });
    await client.signal(mine, 'kill');
  });

  it('[W10] a kill at the very moment of the exit is 200 or 409, never 500', async () => {
    const statuses = new Map<number, number>();
    for (let n = 0; n < 150; n += 1) {
      const { status } = await client.signal(await client.start('true'), 'kill');
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    expect([...statuses.keys()].filter((status) => status !== 200 && status !== 409)).toEqual([]);
  });

  it('[W10] what left the group by setsid is killed with it', async () => {
    const id = await client.start('setsid sh -c "echo \\$\\$; sleep 300" & sleep 300');
    const { host } = shared.server;
    await host.wait('*', { waits: [{ id, for: [{ kind: 'pattern', pattern: '\\d+' }] }] });
    const pid = Number((await client.output(id)).output);
    expect(alive(pid)).toBe(true);
    expect((await client.signal(id, 'kill')).status).toBe(200);
    expect(alive(pid)).toBe(false);
    expect(await client.wait(id)).toMatchObject({ running: false, exit_code: -1, settled: true });
  });

  it('[W10] what the shell left behind is reported beside the real exit code, goes on printing, and can be killed', async () => {
    for (const code of [0, 3]) {
      const hold = gate();
      const id = await client.start(
        `(${hold.wait}; echo late; exec sleep 300) & echo started; exit ${code}`,
      );
      expect(await client.wait(id)).toMatchObject({
        running: false,
        exit_code: code,
        output: 'started\n',
        settled: false,
        streams_open: true,
      });
      hold.open();
      const { host } = shared.server;
      await host.wait('*', { waits: [{ id, for: [{ kind: 'text', text: 'late' }] }] });
      expect((await client.output(id)).output).toBe('started\nlate\n');
      expect((await client.signal(id, 'kill')).status).toBe(200);
      expect(await client.output(id)).toMatchObject({ exit_code: code, settled: true });
      expect((await client.signal(id, 'kill')).status).toBe(409);
    }
  });
});

describe('chats', () => {
  const a = randomUUID();
  const b = randomUUID();

  /** Whether a request acts as chat `a`: only then does the command see it. */
  async function chatSeen(headers: Record<string, string>): Promise<string> {
    return (await client.with(headers).run('printf %s "${CODER_CHAT_ID-}"')).output;
  }

  it('[W11] checks 39–40, 42, 45: which headers make a chat request', async () => {
    expect(await chatSeen({})).toBe('');
    for (const form of [a, a.toUpperCase(), `urn:uuid:${a}`, `{${a}}`, a.replaceAll('-', '')])
      expect(await chatSeen({ 'coder-chat-id': form })).toBe(a);
    const broken = ['', 'nonsense', NIL, a.slice(1), `${a}0`, `{${a}`, `(${a})`, `uuid:${a}`];
    for (const form of broken) expect(await chatSeen({ 'coder-chat-id': form })).toBe('');
  });

  it('[W11] checks 41, 43–44, 46: ancestors are a JSON array; what is none is left out', async () => {
    const ancestorsOf = async (header: string | undefined): Promise<string | undefined> => {
      const id = await shared.chat(a, header).start('true');
      return (await shared.server.host.get('*', { id })).labels?.['ancestors'];
    };
    const [x, y] = [randomUUID(), randomUUID()];
    expect(await ancestorsOf(JSON.stringify([x, y]))).toBe(`${x} ${y}`);
    expect(await ancestorsOf(JSON.stringify([x, 'bad', 7, y.toUpperCase()]))).toBe(`${x} ${y}`);
    for (const none of ['null', '', '{', '"text"', '[]', undefined])
      expect(await ancestorsOf(none)).toBe('');
    const id = await client.with({ 'coder-ancestor-chat-ids': `["${x}"]` }).start('true');
    expect((await shared.server.host.get('*', { id })).labels).not.toHaveProperty('ancestors');
  });

  it('[W12] check 24: with a full token the isolation is the peer’s, case by case', async () => {
    const owned = await shared.chat(a).start('sleep 300');
    const unowned = await client.start('sleep 300');
    const seen = async (caller: CoderClient): Promise<unknown> => {
      const listed = new Set((await caller.list('?limit=1000')).map(({ id }) => id));
      const output = async (id: string): Promise<number> =>
        (await caller.call('GET', `/${id}/output`)).status;
      return [listed.has(owned), await output(owned), listed.has(unowned), await output(unowned)];
    };
    expect(await seen(shared.chat(a))).toEqual([true, 200, false, 200]);
    expect(await seen(shared.chat(b))).toEqual([false, 404, false, 200]);
    expect(await seen(shared.chat(b, JSON.stringify([a])))).toEqual([false, 404, false, 200]);
    for (const form of ['', 'nonsense', NIL])
      expect(await seen(shared.chat(form))).toEqual([true, 200, true, 200]);
    expect(await seen(client)).toEqual([true, 200, true, 200]);
    expect((await shared.chat(b).signal(unowned, 'kill')).status).toBe(200);
    expect((await client.signal(owned, 'kill')).status).toBe(200);
  });

  it('[W13] a scoped token speaks for its chat alone: without, malformed or foreign headers are refused', async () => {
    const own = shared.scoped(a);
    const mine = await own.start('sleep 300');
    const theirs = await shared.chat(b).start('sleep 300');
    const nobodys = await client.start('sleep 300');
    expect((await own.list('?limit=1000')).map(({ id }) => id)).toContain(mine);
    expect((await shared.chat(a).list('?limit=1000')).map(({ id }) => id)).toContain(mine);
    const unknown = randomUUID();
    for (const id of [theirs, nobodys, unknown]) {
      const notFound = { status: 404, body: { message: `Process "${id}" not found.` } };
      expect(await own.call('GET', `/${id}/output`)).toEqual(notFound);
      for (const body of [{ signal: 'kill' }, { signal: 'SIGFOO' }, '{nonsense'])
        expect(await own.call('POST', `/${id}/signal`, body)).toEqual(notFound);
    }
    for (const headers of [
      {},
      { 'coder-chat-id': '' },
      { 'coder-chat-id': 'nonsense' },
      { 'coder-chat-id': NIL },
      { 'coder-chat-id': b },
      { 'coder-chat-id': b, 'coder-ancestor-chat-ids': JSON.stringify([a]) },
    ]) {
      const caller = shared.scoped(a, headers);
      for (const [method, path, body] of [
        ['POST', '/start', { command: 'true' }],
        ['GET', '/list', undefined],
        ['GET', `/${mine}/output`, undefined],
        ['GET', `/${mine}/output?wait=true`, undefined],
        ['POST', `/${mine}/signal`, { signal: 'kill' }],
        ['POST', '/signal-by-idempotency-key', { idempotency_key: 'k', signal: 'kill' }],
      ] as const)
        expect(await caller.call(method, path, body)).toMatchObject({
          status: 403,
          body: { code: 'forbidden' },
        });
    }
    expect(await own.output(mine)).toMatchObject({ running: true });
    for (const id of [mine, theirs, nobodys]) await client.signal(id, 'kill');
  });

  it('[W14] check 47: completions have the chat, its ancestors and the requested directory', async () => {
    const served = await fresh();
    const { server } = served;
    const parent = randomUUID();
    const chat = served.chat(a);
    const first = await served.chat(a, JSON.stringify([parent])).start('exit 3');
    const second = await chat.start({ command: 'true', workdir: '/' });
    await chat.wait(first);
    await chat.wait(second);
    const reported = new Map<string, unknown>();
    while (reported.size < 2) {
      const { completions } = await server.host.completions('*', { waitMs: 60_000 });
      for (const { id, labels, outcome } of completions) reported.set(id, { labels, outcome });
    }
    expect(reported.get(first)).toEqual({
      labels: { background: 'false', chat: a, ancestors: parent },
      outcome: { kind: 'exit', code: 3 },
    });
    expect(reported.get(second)).toMatchObject({
      labels: { chat: a, ancestors: '', workdir: '/' },
    });
  });
});

describe('buffer', () => {
  const CAP = 32_768;

  it('[W15] checks 49–52, 59–60: what fits is verbatim and not called truncated, also between 16 and 32 KiB', async () => {
    for (const text of ['', 'small\n', shortLines(16_384), shortLines(16_385), shortLines(CAP)]) {
      const answer = await client.run(printing(text));
      expect(answer.output).toBe(text);
      expect(answer).not.toHaveProperty('truncated');
    }
    const bytes = await client.run(
      'i=0; while [ $i -lt 200 ]; do printf x; printf ""; i=$((i+1)); done',
    );
    expect(bytes.output).toBe('x'.repeat(200));
  });

  it('[W15] checks 31, 53–54, 58, 63: beyond it both ends are shown around one marker, the counts exact, all within 32 KiB', async () => {
    for (const size of [CAP + 1, 50_000, 100_000, 2.5 * CAP, 5_000_000]) {
      const text = shortLines(size);
      const { output, truncated } = await client.run(printing(text));
      expect(Buffer.byteLength(output)).toBeLessThanOrEqual(CAP);
      const [head = '', number = '', tail = ''] = output.split(
        /\n\n\.\.\. \[omitted (\d+) bytes\] \.\.\.\n\n/,
      );
      expect(text.startsWith(head)).toBe(true);
      expect(text.endsWith(tail)).toBe(true);
      expect(head.length).toBeGreaterThan(16_000);
      expect(tail.length).toBeGreaterThan(16_000);
      expect(truncated).toEqual({
        original_bytes: size,
        retained_bytes: head.length + tail.length,
        omitted_bytes: Number(number),
        strategy: 'head_tail',
        cut_lines: 0,
      });
      expect(Number(number)).toBe(size - head.length - tail.length);
    }
  });

  it('[W15] checks 55–56, 64: a long line is cut in its middle, within 2,048 bytes, wherever it stands, and counted', async () => {
    const long = `${'a'.repeat(1274)}${'z'.repeat(1274)}`;
    const { output, truncated } = await client.run(printing(`short\n${long}\nlast`));
    const [first, cut = '', last] = output.split('\n');
    expect([first, last]).toEqual(['short', 'last']);
    expect(cut.length).toBeLessThanOrEqual(2048);
    expect(cut).toMatch(/^a+ \.\.\. \[truncated \d+ bytes\] \.\.\. z+$/);
    expect(truncated).toMatchObject({ cut_lines: 1, original_bytes: 2548 + 11 });
    expect(Number(truncated?.['retained_bytes']) + Number(truncated?.['omitted_bytes'])).toBe(
      2548 + 11,
    );
    const inTail = await client.run(printing(`${shortLines(60_000)}\n${long}\nlast`));
    expect(inTail.output).toMatch(/\na+ \.\.\. \[truncated \d+ bytes\] \.\.\. z+\nlast$/);
  });

  it('[W15] the newest part of progress by carriage returns is shown, and no character is split', async () => {
    const progress = Array.from({ length: 3000 }, (_, n) => `\rstep ${n}`).join('');
    const shown = await client.run(printing(progress));
    expect(shown.output.endsWith('\rstep 2999')).toBe(true);
    const wide = await client.run(printing('€'.repeat(30_000)));
    expect(wide.output).not.toContain('\ufffd');
    const binary = await client.run(`printf 'a\\377\\000b'`);
    expect(binary.output).toBe('a\ufffd\0b');
  });

  it('[W15] check 57: ten writers at once lose nothing', async () => {
    // The shell writes each line by itself, so that no line is split between writers.
    const each = 'i=0; while [ $i -lt 1000 ]; do echo "$w-$i"; i=$((i+1)); done';
    const script = `for w in 0 1 2 3 4 5 6 7 8 9; do (${each}) & done; wait`;
    const id = await client.start(script);
    await client.wait(id);
    const { bytes } = await shared.server.host.range('*', { id, offset: 0 });
    const lines = bytes.toString().trimEnd().split('\n');
    expect(new Set(lines).size).toBe(10_000);
    expect(lines).toHaveLength(10_000);
  });

  it('[W15] checks 61–62: a new process begins empty, and an answer given does not change', async () => {
    const hold = gate();
    const id = await client.start(`echo one; ${hold.wait}; echo two`);
    await shared.server.host.wait('*', { waits: [{ id, for: [{ kind: 'text', text: 'one' }] }] });
    const before = await client.output(id);
    hold.open();
    expect((await client.wait(id)).output).toBe('one\ntwo\n');
    expect(before.output).toBe('one\n');
    expect((await client.output(await client.start('sleep 0'))).output).toBe('');
  });
});

describe('keys', () => {
  const keyed = (key: string, more: Record<string, unknown> = {}): Record<string, unknown> => ({
    command: 'sleep 300',
    idempotency_key: key,
    ...more,
  });

  it('[W16] check 89: the same key and inputs attach to the process that exists, also after its end', async () => {
    const chat = shared.chat(randomUUID());
    const body = { command: 'echo once', env: { B: '2', A: '1' }, idempotency_key: 'k' };
    const first = await chat.call('POST', '/start', body);
    expect(first.body).toMatchObject({ started: true, idempotency_key: 'k' });
    expect(first.body).not.toHaveProperty('attached');
    await chat.wait(String(first.body['id']));
    const again = { idempotency_key: 'k', env: { A: '1', B: '2' }, command: 'echo once' };
    expect((await chat.call('POST', '/start', again)).body).toMatchObject({
      id: first.body['id'],
      started: false,
      attached: true,
      started_at: first.body['started_at'],
      idempotency_key: 'k',
    });
  });

  it('[W16] check 90: the same key and other inputs are a conflict at once', async () => {
    const chat = shared.chat(randomUUID());
    const id = await chat.start(keyed('k', { env: { A: '1' } }));
    for (const other of [
      { command: 'sleep 301', env: { A: '1' } },
      { background: true, env: { A: '1' } },
      { env: { A: '2' } },
      { env: {} },
      { workdir: '/', env: { A: '1' } },
    ])
      expect(await chat.call('POST', '/start', keyed('k', other))).toMatchObject({
        status: 409,
        body: {
          code: 'input_mismatch',
          message: 'Idempotency key was already used to start a process with different parameters.',
          detail: expect.any(String),
        },
      });
    expect(await chat.list()).toHaveLength(1);
    await chat.signal(id, 'kill');
  });

  it('[W16] checks 92–93: a key belongs to its chat; without a key every start is new', async () => {
    const [one, two] = [shared.chat(randomUUID()), shared.chat(randomUUID())];
    const same = { command: 'true', idempotency_key: randomUUID() };
    const ids = [await one.start(same), await two.start(same), await client.start(same)];
    expect(new Set(ids).size).toBe(3);
    expect(await one.start(same)).toBe(ids[0]);
    const [x, y] = [await one.start('true'), await one.start('true')];
    expect(x).not.toBe(y);
    const empty = await one.call('POST', '/start', { command: 'true', idempotency_key: '' });
    expect(empty.body).toMatchObject({ started: true });
    expect(empty.body).not.toHaveProperty('idempotency_key');
  });

  it('[W16] checks 95–96: concurrent starts spawn once; a failed one frees the key', async () => {
    const chat = shared.chat(randomUUID());
    const answers = await Promise.all(
      Array.from({ length: 30 }, () =>
        chat.call<{ id: string; started: boolean }>('POST', '/start', {
          command: 'true',
          idempotency_key: 'k',
        }),
      ),
    );
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
    expect(answers.filter(({ body }) => body.started)).toHaveLength(1);
    expect(await chat.list()).toHaveLength(1);
    const folder = join(temporaryFolder(), 'later');
    const body = { command: 'true', workdir: folder, idempotency_key: 'f' };
    expect((await chat.call('POST', '/start', body)).status).toBe(500);
    const corrected = { ...body, workdir: '/' };
    expect((await chat.call('POST', '/start', corrected)).body).toMatchObject({ started: true });
  });

  it('[SV17] a replay that names other ancestors attaches: they decide nothing about what runs', async () => {
    const [chat, parent] = [randomUUID(), randomUUID()];
    const body = { command: 'exec sleep 600', idempotency_key: 'replayed' };
    const first = await shared.chat(chat).call<{ id: string }>('POST', '/start', body);
    for (const ancestors of [JSON.stringify([parent]), 'null', '[]']) {
      const again = await shared.chat(chat, ancestors).call('POST', '/start', body);
      expect(again).toMatchObject({ status: 200, body: { id: first.body.id, attached: true } });
    }
    for (const other of [
      { ...body, command: 'exec sleep 601' },
      { ...body, background: true },
      { ...body, env: { A: 'b' } },
    ]) {
      const conflict = await shared
        .chat(chat, JSON.stringify([parent]))
        .call('POST', '/start', other);
      expect(conflict).toMatchObject({ status: 409, body: { code: 'input_mismatch' } });
    }
    await client.signal(first.body.id, 'kill');
  });

  it('[W17] check 94: a signal by key reaches its process, whatever letters the key has', async () => {
    const chat = shared.chat(randomUUID());
    const path = '/signal-by-idempotency-key';
    for (const key of ['7-a/b', '7-a b', '7-a%b', '7-a?b#c', '7-..', '7-ü"\n', 'x'.repeat(400)]) {
      const id = await chat.start(keyed(key));
      expect(await chat.call('POST', path, { idempotency_key: key, signal: 'kill' })).toEqual({
        status: 200,
        body: { message: 'Signal "kill" sent.' },
      });
      expect(await chat.wait(id)).toMatchObject({ running: false });
      expect(await chat.call('POST', path, { idempotency_key: key, signal: 'kill' })).toMatchObject(
        {
          status: 409,
          body: {
            code: 'not_running',
            message: 'The process started with this idempotency key is not running.',
          },
        },
      );
    }
  });

  it('[W21] "interrupt" is Ctrl-C, the signal that ended it stands beside the exit code, and a body may have 4 MiB', async () => {
    const chat = shared.chat(randomUUID());
    // Its own words: a shell that is about to become a program can lose a Ctrl-C.
    const id = await chat.start({ command: 'tail -n +1 -f /etc/passwd' });
    await shared.server.host.wait('*', { waits: [{ id, for: [{ kind: 'text', text: 'root' }] }] });
    expect(await chat.call('POST', `/${id}/signal`, { signal: 'interrupt' })).toMatchObject({
      status: 200,
    });
    expect(await chat.wait(id)).toMatchObject({ exit_code: -1, signal: 'SIGINT' });
    const padded = { command: 'true', ignored: 'x'.repeat(3 * 1024 * 1024) };
    expect(await chat.wait(await chat.start(padded))).toMatchObject({ exit_code: 0 });
    const tooLarge = { command: 'true', ignored: 'x'.repeat(4 * 1024 * 1024) };
    expect((await chat.call('POST', '/start', tooLarge)).status).toBe(413);
  });

  it('[W17] check 94: an unknown or foreign key is 404 with its code; checks in the order JSON, key, signal, lookup', async () => {
    const chat = shared.chat(randomUUID());
    const path = '/signal-by-idempotency-key';
    const id = await chat.start(keyed('mine'));
    const kill = { idempotency_key: 'mine', signal: 'kill' };
    for (const caller of [shared.chat(randomUUID()), client])
      expect(await caller.call('POST', path, kill)).toMatchObject({
        status: 404,
        body: { code: 'process_key_not_found', message: expect.any(String) },
      });
    expect(await chat.output(id)).toMatchObject({ running: true });
    const messageFor = async (body: unknown): Promise<unknown> => {
      const { status, body: answer } = await chat.call('POST', path, body);
      return [status, answer['message']];
    };
    expect(await messageFor('{nonsense')).toEqual([400, 'Request body must be valid JSON.']);
    expect(await messageFor({ signal: 'SIGFOO' })).toEqual([400, 'Idempotency key is required.']);
    expect(await messageFor({ idempotency_key: 'unknown', signal: '' })).toEqual([
      400,
      'Signal is required.',
    ]);
    expect(await messageFor({ idempotency_key: 'unknown', signal: 'SIGFOO' })).toEqual([
      400,
      'Unsupported signal "SIGFOO". Use "kill" or "terminate".',
    ]);
    expect((await chat.call('POST', path, kill)).status).toBe(200);
  });
});

describe('the wire', () => {
  it('[W18] bodies are read as leniently as Go reads them', async () => {
    for (const body of [
      '{"COMMAND":"echo hi"}',
      '{"Command":"echo hi","Env":null,"workdir":null,"background":null}',
      '{"command":"echo no","command":"echo hi"}',
      '{"command":"echo hi"} trailing } garbage',
      '{"command":"echo hi"}{"command":"echo no"}',
      '  \n{"command":"echo hi","__proto__":{"x":1},"unknown":[[[]]]}',
    ]) {
      const answer = await client.call<{ id: string }>('POST', '/start', body);
      expect([body, answer.status]).toEqual([body, 200]);
      expect((await client.wait(answer.body.id)).output).toBe('hi\n');
    }
  });

  it('[W18] JSON is taken without a Content-Type and with the right one; any other is 415', async () => {
    const body = { command: 'true' };
    for (const type of ['application/json', 'application/json; charset=utf-8', 'APPLICATION/JSON'])
      expect(
        (await client.with({ 'content-type': type }).call('POST', '/start', body)).status,
      ).toBe(200);
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', ''])
      expect(
        (await client.with({ 'content-type': type }).call('POST', '/start', body)).status,
      ).toBe(415);
  });

  it('[W18] answers are JSON as Go writes it: HTML escaped, one newline at the end', async () => {
    const id = await client.start(`printf '<a>&\\342\\200\\250'`);
    await client.wait(id);
    const { headers, text } = await client.send('GET', `${PREFIX}/${id}/output`);
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(text).toContain('"output":"\\u003ca\\u003e\\u0026\\u2028"');
    expect(text.endsWith('}\n')).toBe(true);
    expect(text.trimEnd()).not.toContain('\n');
  });

  it('[W19] what is not there is JSON too: 404, and 405 with Allow', async () => {
    for (const [method, path, status, allow] of [
      ['GET', `${PREFIX}/start`, 405, 'POST'],
      ['DELETE', `${PREFIX}/list`, 405, 'GET'],
      ['PUT', `${PREFIX}/x/output`, 405, 'GET'],
      ['GET', `${PREFIX}/x/signal`, 405, 'POST'],
      ['GET', `${PREFIX}/signal-by-idempotency-key`, 405, 'POST'],
      ['GET', PREFIX, 404, undefined],
      ['GET', `${PREFIX}/list/`, 404, undefined],
      ['GET', `${PREFIX}/x/y/z`, 404, undefined],
      ['GET', `${PREFIX}//output`, 404, undefined],
      ['GET', '/api/v0/nothing', 404, undefined],
    ] as const) {
      const reply = await client.send(method, path);
      expect([path, reply.status, reply.headers['allow']]).toEqual([path, status, allow]);
      expect(reply.headers['content-type']).toBe('application/json; charset=utf-8');
      expect(JSON.parse(reply.text)).not.toHaveProperty('code', 'process_key_not_found');
      if (path.startsWith(PREFIX)) expect(JSON.parse(reply.text)).toHaveProperty('message');
    }
    const head = await client.send('HEAD', `${PREFIX}/list`);
    expect([head.status, head.headers['allow'], head.text]).toEqual([405, 'GET', '']);
  });

  it('[W19] a server that is started again serves the same processes, keys and chats', async () => {
    const home = temporaryFolder();
    const first = await serve({ home });
    const chat = randomUUID();
    const body = { command: 'sleep 300', idempotency_key: 'k' };
    const id = await first.chat(chat).start(body);
    await first.server.close();
    const second = await fresh({ home });
    expect(second.token).toBe(first.token);
    expect((await second.chat(chat).call('POST', '/start', body)).body).toMatchObject({
      id,
      attached: true,
    });
    expect(await second.chat(randomUUID()).list()).toEqual([]);
    expect((await second.chat(chat).signal(id, 'kill')).status).toBe(200);
    expect(readFileSync(second.server.tokenFile ?? '', 'utf8').trim()).toBe(first.token);
  });
});
