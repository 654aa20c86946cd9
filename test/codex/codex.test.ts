// The codex door: handshake, envelope, processes. The numbers in the comments are those of the behaviours that the peer's
// own tests check, as docs/wire/codex.md lists them.

import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { Served } from '../support/coder-client.ts';
import { RawConnection } from '../support/raw-http.ts';
import { CodexClient, ENV, serveCodex, text } from '../support/codex-client.ts';
import { temporaryFolder } from '../support/hosts.ts';

let served: Served;
let url = '';

beforeAll(async () => {
  ({ served, url } = await serveCodex());
});
afterAll(() => served.stop());

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('the handshake', () => {
  it('[CX1] initialize answers a session id and what the environment is', async () => {
    // 1
    const client = await CodexClient.connect(url);
    const answer = (await client.call('initialize', { clientName: 'test' })) as Record<
      string,
      unknown
    >;
    expect(answer).toEqual({
      sessionId: expect.stringMatching(UUID) as string,
      environmentInfo: expect.objectContaining({
        shell: { name: expect.any(String) as string, path: expect.stringMatching(/^\//) as string },
        capabilities: expect.objectContaining({
          processList: true,
          processResize: true,
          processCloseStdin: true,
          processAnySignal: true,
        }) as unknown,
      }) as unknown,
    });
  });

  it('[CX1] what comes before its turn is refused in wire order, however much is sent at once', async () => {
    // 2
    const client = await CodexClient.connect(url);
    const asked = [
      client.ask('process/read', { processId: 'x' }),
      client.ask('fs/readFile', { path: 'file:///etc/hostname' }),
      client.ask('http/request', {}),
      client.ask('initialize', { clientName: 'test' }),
      client.ask('environment/status'),
      client.ask('process/start', {}),
    ];
    client.notify('initialized');
    asked.push(client.ask('process/read', { processId: 'x' }));
    const answers = await Promise.all(asked);
    expect(answers.map((answer) => ('error' in answer ? answer.error.message : 'ok'))).toEqual([
      'client must call initialize before using exec methods',
      'client must call initialize before using filesystem methods',
      'client must call initialize before using http methods',
      'ok',
      'client must send initialized before using environment status methods',
      'client must send initialized before using exec methods',
      'unknown process id x',
    ]);
    expect(client.raw.map((each) => (JSON.parse(each) as { id: number }).id)).toEqual([
      1, 2, 3, 4, 5, 6, 7,
    ]);
  });

  it('[CX1] a second initialize is refused; one that failed may be tried again', async () => {
    const client = await CodexClient.connect(url);
    expect(await client.refusal('initialize', {})).toEqual({
      code: -32602,
      message: 'missing field `clientName`',
    });
    const unknown = '00000000-0000-4000-8000-000000000000';
    expect(
      await client.refusal('initialize', { clientName: 'x', resumeSessionId: unknown }),
    ).toEqual({
      code: -32600,
      message: `unknown session id ${unknown}`,
    });
    await client.call('initialize', { clientName: 'x', resumeSessionId: null });
    expect(await client.refusal('initialize', { clientName: 'x' })).toEqual({
      code: -32600,
      message: 'initialize may only be sent once per connection',
    });
  });

  it('[CX3] a notification or an answer that nobody asked for ends the connection', async () => {
    const early = await CodexClient.connect(url);
    early.notify('initialized');
    await early.dropped();
    expect(early.raw).toEqual([]);
    for (const message of [{ method: 'nope/nope' }, { id: 5, result: {} }, { id: 5, error: {} }]) {
      const client = await CodexClient.ready(url);
      client.send(message);
      await client.dropped();
      expect(client.raw).toHaveLength(1);
    }
  });
});

describe('the envelope', () => {
  it('[CX2] what is no message is answered with id -1, and the connection goes on', async () => {
    // 3, 22
    const client = await CodexClient.ready(url);
    const many = `{"id":1,"method":"x","params":[${Array(262_144).fill('1').join(',')}]}`;
    const bad = [
      ['not-json', /JSON/],
      ['[]', /expected a JSON-RPC object$/],
      ['"x"', /expected a JSON-RPC object$/],
      ['{}', /neither/],
      ['{"id":90,"method":"a","method":"a"}', /duplicate JSON object key `method`/],
      [
        '{"id":90,"method":"a","params":{"b":{"c":1,"\\u0063":2}}}',
        /duplicate JSON object key `c`/,
      ],
      [`{"id":1,"method":"a","params":${'['.repeat(200)}${']'.repeat(200)}}`, /recursion limit/],
      [many, /too many JSON values/],
      ['{"id":1.5,"method":"a"}', /64-bit integer/],
      ['{"id":9223372036854775808,"method":"a"}', /64-bit integer/],
      ['{"id":true,"method":"a"}', /64-bit integer/],
      ['{"id":1,"method":5}', /not a string/],
    ] as const;
    for (const [message] of bad) client.send(message);
    await client.until(() => client.raw.length > bad.length);
    const prefix =
      /^failed to parse websocket JSON-RPC message from exec-server websocket 127\.0\.0\.1:\d+: /;
    for (const [index, [, reason]] of bad.entries()) {
      const answer = JSON.parse(client.raw[index + 1] ?? '') as {
        id: number;
        error: { code: number; message: string };
      };
      expect(answer).toEqual({
        id: -1,
        error: { code: -32600, message: expect.stringMatching(reason) as string },
      });
      expect(answer.error.message).toMatch(prefix);
    }
    expect(await client.call('process/list')).toEqual({ processes: [] });
  });

  it('[CX2] ids come back in the letters they came in; "jsonrpc" and large scalars are fine', async () => {
    const client = await CodexClient.ready(url);
    for (const id of ['9223372036854775807', '-9223372036854775808', '"abc"', '"\\u00e9"', '-0'])
      client.send(`{"jsonrpc":"2.0", "id" : ${id} ,"method":"nope/nope"}`);
    client.send(`{"method":"x/y","id":7,"params":"${'z'.repeat(3_000_000)}"}`);
    await client.until(() => client.raw.length === 7);
    const refusal =
      '{"error":{"code":-32601,"message":"exec-server stub does not implement `nope/nope` yet"},"id":';
    expect(client.raw.slice(1, 6)).toEqual([
      `${refusal}9223372036854775807}`,
      `${refusal}-9223372036854775808}`,
      `${refusal}"abc"}`,
      `${refusal}"é"}`,
      `${refusal}-0}`,
    ]);
    expect(client.raw[6]).toContain('`x/y` yet"},"id":7}');
  });

  it('[CX2] binary frames are messages too', async () => {
    // 4
    const client = await CodexClient.ready(url);
    client.socket.send(Buffer.from('{"id":77,"method":"process/list"}'));
    await client.until(() => client.raw.length === 2);
    expect(client.raw[1]).toBe('{"id":77,"result":{"processes":[]}}');
  });

  it('[CX4] Origin, path and token are looked at before the upgrade', async () => {
    // 5
    const base = `ws://127.0.0.1:${served.port}`;
    const bearer = { authorization: `Bearer ${served.token}` };
    const cases: [string, Record<string, string>, number][] = [
      [url, { origin: 'http://evil.example' }, 403],
      [`${base}/codex`, {}, 401],
      [`${base}/codex?token=wrong`, {}, 401],
      [`${base}/codex`, { authorization: 'Basic x' }, 401],
      [`${base}/nothing`, bearer, 404],
      [`${base}/v1/processes?token=${served.token}`, {}, 401],
    ];
    for (const [target, headers, status] of cases)
      expect(await refusedWith(target, headers)).toBe(status);
    await CodexClient.ready(`${base}/codex`, { headers: bearer });
    const plain = await status(`http://127.0.0.1:${served.port}/codex`, bearer);
    expect(plain).toBe(400);
    // A token in the query opens nothing but a WebSocket.
    expect(await status(`http://127.0.0.1:${served.port}/v1/processes?token=${served.token}`)).toBe(
      401,
    );
  });

  it('[CX4] a request to upgrade behind one that is not answered yet ends the connection, and nothing else', async () => {
    const host = `Host: 127.0.0.1:${served.port}\r\nAuthorization: Bearer ${served.token}`;
    const body = JSON.stringify({ waits: [{ id: 'nobody', for: [{ kind: 'exit' }] }] });
    const connection = new RawConnection(served.port);
    const first = await connection.ask(
      `GET /v1/completions?waitMs=600000&subscriber=late HTTP/1.1\r\n${host}\r\n\r\n` +
        `GET /codex HTTP/1.1\r\n${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
    );
    expect(first.status).toBe(0);
    const again = await connection.ask(
      `POST /v1/wait HTTP/1.1\r\n${host}\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${body.length}\r\n\r\n${body}`,
    );
    expect(again.status).toBe(404);
    connection.close();
  });

  it('[CX4] a session of one token is unknown to another', async () => {
    const base = `ws://127.0.0.1:${served.port}/codex`;
    const [alice, bob] = ['alice', 'bob'].map((owner) => served.tokens.create(owner).token);
    const first = await CodexClient.ready(`${base}?token=${alice}`);
    await first.start('mine', ['sleep', '600']);
    await first.kill();
    for (const token of [bob, served.token]) {
      const other = await CodexClient.connect(`${base}?token=${token}`);
      const refusal = await other.refusal('initialize', {
        clientName: 'x',
        resumeSessionId: first.session,
      });
      expect(refusal.message).toBe(`unknown session id ${first.session}`);
    }
    const again = await CodexClient.ready(`${base}?token=${alice}`, { resume: first.session });
    expect(await again.call('process/terminate', { processId: 'mine' })).toEqual({ running: true });
    await again.untilClosed('mine');
  });
});

describe('starting', () => {
  it('[CX6] a start answers its id; of equal starts at once exactly one wins', async () => {
    // 9, 11
    const client = await CodexClient.ready(url);
    const spec = { argv: ['sleep', '600'], cwd: 'file:///tmp', env: ENV, tty: false };
    const answers = await Promise.all([
      client.ask('process/start', { processId: 'proc-1', ...spec }),
      client.ask('process/start', { processId: 'proc-1', ...spec }),
    ]);
    const taken = { code: -32600, message: 'process proc-1 already exists' };
    expect(answers.map((answer) => ('error' in answer ? answer.error : answer.result))).toEqual([
      { processId: 'proc-1', sandboxType: 'none' },
      taken,
    ]);
    expect(await client.refusal('process/start', { processId: 'proc-1', ...spec })).toEqual(taken);
    expect(
      await client.refusal('process/start', { processId: 'proc-1', ...spec, argv: ['true'] }),
    ).toEqual(taken);
    await client.call('process/terminate', { processId: 'proc-1' });
    await client.untilClosed('proc-1');
    expect(await client.refusal('process/start', { processId: 'proc-1', ...spec })).toEqual(taken);
  });

  it('[CX6] any text is an id, and every answer repeats it', async () => {
    const client = await CodexClient.ready(url);
    const ids = ['', 'a/b c', 'x-1', 'ü€😀', 'nul\u0000in', 'y'.repeat(20_000), '-', '1', 'A_b-c'];
    for (const id of ids) {
      expect(await client.start(id, ['echo', 'hi'])).toEqual({
        processId: id,
        sandboxType: 'none',
      });
      await client.untilClosed(id);
      expect(client.output(id)).toBe('hi\n');
    }
    const { processes } = (await client.call('process/list')) as {
      processes: { processId: string }[];
    };
    expect(processes.map(({ processId }) => processId).sort()).toEqual([...ids].sort());
  });

  it("[CX6] what is wrong is said in the peer's words and order, and the id stays free", async () => {
    // 36
    const client = await CodexClient.ready(url);
    const good = { processId: 'e', argv: ['true'], cwd: 'file:///tmp', env: ENV, tty: false };
    const folder = temporaryFolder();
    const cases: [unknown, number, string][] = [
      [null, -32602, 'invalid type: null, expected struct WireExecParams'],
      [[], -32602, 'invalid type: sequence, expected struct WireExecParams'],
      [{ processId: 'x' }, -32602, 'missing field `argv`'],
      [{ ...good, env: undefined }, -32602, 'missing field `env`'],
      [{ ...good, tty: undefined }, -32602, 'missing field `tty`'],
      [{ ...good, argv: 'true' }, -32602, 'invalid type: string "true", expected a sequence'],
      [{ ...good, processId: 5 }, -32602, 'invalid type: number, expected a string'],
      [{ ...good, argv: [] }, -32602, 'argv must not be empty'],
      [{ ...good, argv: [], cwd: '/tmp' }, -32602, 'invalid URI: relative URL without a base'],
      [{ ...good, cwd: 'http://x/' }, -32602, 'unsupported path URI scheme `http`'],
      [
        { ...good, cwd: 'file://server/share' },
        -32602,
        "cwd URI `file://server/share` is not valid on this exec-server host: 'file://server/share' is invalid on 'linux'",
      ],
      [{ ...good, argv: ['/nope/x'] }, -32603, 'No such file or directory (os error 2)'],
      [{ ...good, argv: ['/nope/x'], tty: true }, -32603, 'No such file or directory (os error 2)'],
      [{ ...good, argv: ['nope-not-here'] }, -32603, 'No such file or directory (os error 2)'],
      [{ ...good, cwd: `file://${folder}/nope` }, -32603, 'No such file or directory (os error 2)'],
      [{ ...good, cwd: 'file:///etc/passwd' }, -32603, 'Not a directory (os error 20)'],
      [{ ...good, argv: ['/etc/passwd'] }, -32603, 'Permission denied (os error 13)'],
      [{ ...good, argv: ['sh', '-c', 'a\u0000b'] }, -32603, 'nul byte found in provided data'],
      [{ ...good, argv: [''] }, -32603, 'missing program for pipe spawn'],
      [
        { ...good, onDetach: 'maybe' },
        -32602,
        'unknown variant `maybe`, expected one of `kill`, `keep`',
      ],
      [{ ...good, networkProxy: {} }, -32602, 'sandbox intent cannot be enforced on this executor'],
    ];
    for (const [params, code, message] of cases)
      expect(await client.refusal('process/start', params)).toEqual({ code, message });
    expect(await client.call('process/start', good)).toEqual({
      processId: 'e',
      sandboxType: 'none',
    });
    await client.untilClosed('e');
  });

  it('[CX6] a name of its own, a folder of its own, and members that nobody knows', async () => {
    // 38: a snapshot is not taken, and the plain command runs
    const client = await CodexClient.ready(url);
    const folder = temporaryFolder();
    await client.start('n', ['bash', '-c', 'echo $0; pwd'], {
      arg0: 'zeroth',
      cwd: `file://${folder}`,
      future: { deep: [1] },
      metadata: { threadId: 't' },
      shellSnapshot: { scopeId: 's', shell: { name: 'bash', path: '/bin/bash' } },
    });
    await client.untilClosed('n');
    expect(client.output('n')).toBe(`zeroth\n${folder}\n`);
    await client.start('m', ['sleep', '600'], { arg0: 'zeroth' });
    const { processes } = (await client.call('process/list')) as {
      processes: { pid: number; processId: string }[];
    };
    const pid = processes.find(({ processId }) => processId === 'm')?.pid;
    await client.shell('ps', `tr '\\0' ' ' < /proc/${pid}/cmdline`);
    await client.untilClosed('ps');
    expect(client.output('ps')).toBe('zeroth 600 ');
  });

  it('[CX18] a sandbox that is off is none; one that cannot be kept refuses the start', async () => {
    // 37, as far as no bubblewrap is needed for it
    const client = await CodexClient.ready(url);
    const sandbox = (permissions: unknown): unknown => ({
      permissions,
      windowsSandboxLevel: 'disabled',
    });
    expect(await client.start('off', ['true'], { sandbox: sandbox({ type: 'disabled' }) })).toEqual(
      { processId: 'off', sandboxType: 'none' },
    );
    const refusal = await client.refusal('process/start', {
      processId: 'ext',
      argv: ['true'],
      cwd: 'file:///',
      env: ENV,
      tty: false,
      sandbox: sandbox({ type: 'external', network: 'restricted' }),
    });
    const message = 'sandbox intent cannot be enforced on this executor';
    expect(refusal).toEqual({ code: -32602, message });
    expect(await client.read('off', { waitMs: 60_000 })).toMatchObject({ exited: true });
    expect((await client.refusal('process/read', { processId: 'ext' })).message).toBe(
      'unknown process id ext',
    );
  });

  it('[CX17] without a policy the environment is exactly what was sent; with one, policy first and then what was sent', async () => {
    // 35
    const client = await CodexClient.ready(url);
    const run = async (id: string, env: unknown, envPolicy?: unknown): Promise<string[]> => {
      await client.start(id, ['/usr/bin/env'], { env, envPolicy });
      await client.untilClosed(id);
      return client
        .output(id)
        .trim()
        .split('\n')
        .filter((line) => !line.startsWith('HOLDFAST_PROCESS='))
        .sort();
    };
    const policy = {
      inherit: 'none',
      ignoreDefaultExcludes: false,
      exclude: [],
      set: {},
      includeOnly: [],
    };
    expect(await run('1', { ONLY: '1', codex_exec_server_noise_auth_token: 'x' })).toEqual([
      'ONLY=1',
    ]);
    expect(
      await run(
        '2',
        { B: 'sent' },
        { ...policy, set: { A: '1', B: 'policy', OPENAI_IDENTITY_TOKEN_FILE: 'x' } },
      ),
    ).toEqual(['A=1', 'B=sent']);
    const core = await run('3', {}, { ...policy, inherit: 'core' });
    expect(core).toContain(`PATH=${process.env['PATH']}`);
    expect(
      core.every((line) =>
        /^(PATH|SHELL|TMPDIR|TEMP|TMP|HOME|LANG|LC_ALL|LC_CTYPE|LOGNAME|USER)=/.test(line),
      ),
    ).toBe(true);
    expect(
      await run(
        '4',
        {},
        { ...policy, inherit: 'all', includeOnly: ['path', 'ho*'], exclude: ['h*'] },
      ),
    ).toEqual([`PATH=${process.env['PATH']}`]);
    for (const [bad, message] of [
      [
        { ...policy, inherit: 'some' },
        'unknown variant `some`, expected one of `core`, `all`, `none`',
      ],
      [{ inherit: 'all' }, 'missing field `ignoreDefaultExcludes`'],
    ] as const)
      expect(
        (
          await client.refusal('process/start', {
            processId: '5',
            argv: ['true'],
            cwd: 'file:///',
            env: {},
            tty: false,
            envPolicy: bad,
          })
        ).message,
      ).toBe(message);
  });
});

describe('notifications', () => {
  it('[CX7] output, errors, exit and close are numbered 1, 2, 3, 4, and can be read again', async () => {
    // 23, 24, 25, 39
    const client = await CodexClient.ready(url);
    await client.shell('p', 'echo out; read _; echo err >&2; read _; exit 7', { pipeStdin: true });
    for (const words of ['out', 'err']) {
      await client.untilOutput('p', words);
      await client.write('p', '\n', words);
    }
    await client.untilClosed('p');
    const out = Buffer.from('out\n').toString('base64');
    const err = Buffer.from('err\n').toString('base64');
    expect(client.of('p')).toEqual([
      {
        method: 'process/output',
        params: { processId: 'p', seq: 1, stream: 'stdout', chunk: out },
      },
      {
        method: 'process/output',
        params: { processId: 'p', seq: 2, stream: 'stderr', chunk: err },
      },
      {
        method: 'process/exited',
        params: { processId: 'p', seq: 3, exitCode: 7, sandboxDenied: false },
      },
      { method: 'process/closed', params: { processId: 'p', seq: 4 } },
    ]);
    expect(await client.read('p')).toEqual({
      chunks: [
        { seq: 1, stream: 'stdout', chunk: out },
        { seq: 2, stream: 'stderr', chunk: err },
      ],
      nextSeq: 5,
      exited: true,
      exitCode: 7,
      closed: true,
      failure: null,
      sandboxDenied: false,
    });
    await client.start('t', ['true']);
    await client.untilClosed('t');
    expect(client.of('t').map(({ params }) => [params.seq, params.exitCode])).toEqual([
      [1, 0],
      [2, undefined],
    ]);
  });

  it('[CX7] the exit is numbered behind everything the program had printed, and nothing is lost before anyone looks', async () => {
    // 33
    const client = await CodexClient.ready(url);
    const ids = Array.from({ length: 60 }, (_, index) => `q${index}`);
    await Promise.all(
      ids.map((id, index) =>
        client.shell(id, 'echo a; echo b >&2; echo c', { tty: index % 3 === 0 }),
      ),
    );
    await Promise.all(ids.map((id) => client.untilClosed(id)));
    for (const id of ids) {
      const events = client.of(id);
      expect(events.map(({ params }) => params.seq)).toEqual(events.map((_, index) => index + 1));
      expect(events.slice(-2).map(({ method }) => method)).toEqual([
        'process/exited',
        'process/closed',
      ]);
      expect(client.output(id).replace(/\r/g, '').split('').sort().join('')).toBe('\n\n\nabc');
    }
  });

  it('[CX7] a descendant that holds the output delays the close, not the exit, and its late words come between', async () => {
    // 26, 27
    const client = await CodexClient.ready(url);
    await client.start(
      'g',
      ['sh', '-c', 'exec 3<&0; (read line <&3; echo "late $line") & exit 0'],
      {
        pipeStdin: true,
      },
    );
    await client.until(() => client.of('g').some(({ method }) => method === 'process/exited'));
    const first = await client.read('g', { waitMs: 60_000 });
    expect(first).toMatchObject({
      chunks: [],
      exited: true,
      exitCode: 0,
      closed: false,
      nextSeq: 2,
    });
    const waiting = client.read('g', { afterSeq: 1, waitMs: 60_000 });
    await client.write('g', 'word\n', 'w');
    const late = await waiting;
    expect(text(late.chunks)).toBe('late word\n');
    await client.untilClosed('g');
    expect(client.of('g').map(({ method, params }) => [method, params.seq])).toEqual([
      ['process/exited', 1],
      ['process/output', 2],
      ['process/closed', 3],
    ]);
  });

  it("[CX10] exit codes are the program's own, or 128 and the signal, on pipes and terminals", async () => {
    const client = await CodexClient.ready(url);
    for (const tty of [false, true]) {
      await client.shell(`s${tty}`, 'kill -9 $$', { tty });
      await client.untilClosed(`s${tty}`);
      expect(
        client.of(`s${tty}`).find(({ method }) => method === 'process/exited')?.params.exitCode,
      ).toBe(137);
    }
  });
});

function status(target: string, headers: Record<string, string> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    request(target, { headers, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    })
      .once('error', reject)
      .end();
  });
}

/** The status with which a WebSocket was not opened. */
function refusedWith(target: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(target, { headers });
    socket.once('unexpected-response', (_request, response) => {
      resolve(response.statusCode ?? 0);
      response.resume();
      socket.terminate();
    });
    socket.once('open', () => reject(new Error('it was opened')));
    socket.once('error', () => undefined);
  });
}
