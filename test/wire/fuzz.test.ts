// Mutated requests against a whole server: nothing it is sent makes it fall, stumble or stand still. A failure names its
// seed; FUZZ_SEED runs it again, FUZZ_REQUESTS makes it longer.

import { existsSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { dice, type Dice } from '../support/random.ts';
import { watchedServer, type Ready } from '../support/watched-server.ts';

const REQUESTS = Number(process.env['FUZZ_REQUESTS'] ?? 4000);
const SEED = Number(process.env['FUZZ_SEED'] ?? Date.now() % 1_000_000);
const CONNECTIONS = 32;
/** What is not answered by then may lack a part: the end of sending tells the server that none will follow. */
const PATIENCE_MS = 40;
/** What is not answered by then waits for a process. */
const END_MS = 1000;
const STALL_MS = 200;

/** What parsers trip over. No word among them does anything in a shell. */
const TOKENS = [
  '\r\n',
  '\r\n\r\n',
  '\n',
  '\0',
  ' ',
  ':',
  '%',
  '%00',
  '%zz',
  '%2e%2e%2f',
  '../',
  '//',
  '?',
  '#',
  '{',
  '}',
  '[',
  '"',
  '\\',
  '\\u0000',
  '\\ud800',
  '\u{fffd}',
  '\xff\xfe',
  'null',
  'true',
  '-1',
  '1e999',
  '99999999999999999999',
  '0x10',
  '__proto__',
  'constructor',
  'Transfer-Encoding: chunked\r\n',
  'Content-Length: 5\r\n',
  'Expect: 100-continue\r\n',
  'Connection: close\r\n',
  'Connection: Upgrade\r\nUpgrade: websocket\r\n',
  'Coder-Chat-Id: x\r\n',
  'Last-Event-ID: 7\r\n',
  'Range: bytes=0-\r\n',
  'HTTP/1.0',
  'HTTP/9.9',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
];

const NAMES = [
  'command',
  'COMMAND',
  'argv',
  'workdir',
  'cwd',
  'env',
  'background',
  'idempotency_key',
  'key',
  'signal',
  'id',
  'name',
  'labels',
  'size',
  'streams',
  'stdin',
  'waits',
  'for',
  'kind',
  'pattern',
  'text',
  'timeoutMs',
  'limit',
  'data',
  '__proto__',
  '',
];

function value(roll: Dice, depth = 0): unknown {
  const simple = [
    () => ':',
    () => 'kill',
    () => 'terminate',
    () => null,
    () => roll.chance(0.5),
    () => roll.below(10) - 1,
    () => 1e308,
    () => Number.MIN_SAFE_INTEGER,
    () => '',
    () => '\0',
    () => '\ud800',
    () => '😀'.repeat(roll.below(20)),
    () => ': '.padEnd(roll.below(200_000), 'x'),
    () => '(a+)+$',
    () => Object.fromEntries([[roll.pick(NAMES), ':']]),
  ];
  if (depth > 3 || roll.chance(0.6)) return roll.pick(simple)();
  if (roll.chance(0.5)) return Array.from({ length: roll.below(4) }, () => value(roll, depth + 1));
  return objectOf(roll, depth + 1);
}

function objectOf(roll: Dice, depth = 0): Record<string, unknown> {
  const entries = Array.from({ length: 1 + roll.below(5) }, (): [string, unknown] => [
    roll.pick(NAMES),
    value(roll, depth),
  ]);
  return Object.fromEntries(entries);
}

function body(roll: Dice): string {
  const bodies = [
    () => '{"command":":"}',
    () => '{"command":":","idempotency_key":"k","env":{"A":"b"}}',
    () => '{"signal":"kill"}',
    () => '{"idempotency_key":"k","signal":"kill"}',
    () => JSON.stringify(objectOf(roll)),
    () => JSON.stringify({ command: ':', ...objectOf(roll) }),
    () => '['.repeat(roll.below(100_000)),
    () => `{"command":":","x":${'{"a":'.repeat(roll.below(5000))}`,
    () => `{"command":":"}${roll.pick(TOKENS)}`,
  ];
  return roll.chance(0.5)
    ? mutate(roll.pick(bodies)(), roll, 1 + roll.below(3))
    : roll.pick(bodies)();
}

/** Byte by byte: latin1 keeps them apart. */
function mutate(text: string, roll: Dice, times: number): string {
  let now = text;
  for (let n = 0; n < times; n += 1) {
    const at = roll.below(now.length + 1);
    const length = roll.below(Math.min(40, now.length - at + 1));
    const changes = [
      () => now.slice(0, at) + roll.pick(TOKENS) + now.slice(at),
      () => now.slice(0, at) + now.slice(at + length),
      () => now.slice(0, at) + now.slice(at, at + length).repeat(1 + roll.below(8)) + now.slice(at),
      () => now.slice(0, at) + String.fromCharCode(roll.below(256)) + now.slice(at + 1),
      () => now.slice(0, at),
    ];
    now = roll.pick(changes)();
  }
  return now;
}

function request(roll: Dice, { url, token, routes }: Ready, ids: readonly string[]): Buffer {
  const [method = 'GET', pattern = '/'] = roll.pick(routes).split(' ');
  const path = pattern.replaceAll(/:\w+/g, () => roll.pick(ids));
  const queries = [
    '',
    '',
    '',
    '?wait=true',
    '?limit=5',
    '?wait=true&limit=-1',
    '?after=1&offset=x',
  ];
  const target = roll.chance(0.1)
    ? mutate(path, roll, 1 + roll.below(3))
    : path + roll.pick(queries);
  const sent = method === 'GET' && roll.chance(0.9) ? '' : body(roll);
  const chats = ['', '', 'Coder-Chat-Id: 6f1d4b1e-8d3a-4d0e-9a53-1c1f7c0b5e11\r\n'];
  const head = [
    `${roll.chance(0.95) ? method : roll.pick(['GET', 'PUT', 'PATCH', 'TRACE', 'CONNECT'])} ${target} HTTP/1.1\r\n`,
    `Host: ${new URL(url).host}\r\n`,
    roll.chance(0.9) ? `Authorization: Bearer ${token}\r\n` : '',
    roll.chance(0.8) ? 'Content-Type: application/json\r\n' : '',
    roll.pick(chats),
    sent === '' ? '' : `Content-Length: ${Buffer.byteLength(sent, 'utf8')}\r\n`,
    '\r\n',
  ].join('');
  const whole = Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(sent)]);
  if (!roll.chance(0.3)) return whole;
  return Buffer.from(mutate(whole.toString('latin1'), roll, 1 + roll.below(4)), 'latin1');
}

class Sender {
  private readonly port: number;
  private socket: Socket | undefined;

  constructor(port: number) {
    this.port = port;
  }

  /** The status of the first answer, or 0 when none came in time. */
  async send(bytes: Buffer): Promise<{ status: number; text: string }> {
    const socket = this.open();
    const text = await new Promise<string>((resolve) => {
      let received = '';
      const done = (): void => {
        clearTimeout(timer);
        socket.removeAllListeners();
        socket.on('error', () => undefined);
        resolve(received);
      };
      let timer = setTimeout(() => {
        socket.end();
        timer = setTimeout(done, END_MS);
      }, PATIENCE_MS);
      socket.on('data', (chunk: Buffer) => {
        received += chunk.toString('latin1');
        if (complete(received)) done();
      });
      socket.on('error', done);
      socket.on('close', done);
      socket.write(bytes);
    });
    const whole = /^HTTP\/1\.1 [2-5]\d\d /.test(text) && complete(text) === text.length;
    const goesOn =
      whole && /\r\nContent-Length: /i.test(text) && !/\r\nConnection: close/i.test(text);
    if (!goesOn || !socket.writable) this.close();
    return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0), text };
  }

  close(): void {
    // With what is unread: often a reset instead of an end, which the server must bear as well.
    this.socket?.destroy();
    this.socket = undefined;
  }

  private open(): Socket {
    if (this.socket && !this.socket.destroyed) return this.socket;
    this.socket = connect(this.port, '127.0.0.1');
    this.socket.setNoDelay(true);
    return this.socket;
  }
}

/** Where the first answer ends, if it has come whole. */
function complete(text: string): number | undefined {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const length = /\r\nContent-Length: (\d+)/i.exec(text.slice(0, headEnd + 2))?.[1];
  // Without a length it is a stream that does not end.
  const end = headEnd + 4 + Number(length ?? 0);
  return text.length >= end ? end : undefined;
}

it(
  '[G10] mutated requests: no crash, nothing uncaught, no mistake of ours, no stall, and it still answers',
  async () => {
    const server = await watchedServer();
    const port = Number(new URL(server.url).port);
    const authorized = { authorization: `Bearer ${server.token}` };
    const start = async (command: string): Promise<string> => {
      const answer = await fetch(`${server.url}/api/v0/processes/start`, {
        method: 'POST',
        headers: { ...authorized, 'content-type': 'application/json' },
        body: JSON.stringify({ command }),
      });
      return ((await answer.json()) as { id: string }).id;
    };
    const ids = ['x', 'no-such', '%00', '..', await start('seq 1 20000'), await start('sleep 600')];
    const statuses = new Map<number, number>();
    const mistakes: string[] = [];
    let left = REQUESTS;
    const worker = async (_: unknown, index: number): Promise<void> => {
      const roll = dice(SEED * CONNECTIONS + index);
      const sender = new Sender(port);
      while (left-- > 0) {
        const bytes = request(roll, server, ids);
        const { status, text } = await sender.send(bytes);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (text.includes('Something went wrong inside') && mistakes.length < 5)
          mistakes.push(bytes.toString('latin1').slice(0, 2000));
      }
      sender.close();
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, worker));
    const { uncaught, unhandled, reports, longestBusyMs, longestDelayMs } = await server.seen();
    const told = {
      seed: SEED,
      statuses: Object.fromEntries(statuses),
      longestBusyMs,
      longestDelayMs,
    };
    if (process.env['FUZZ_REQUESTS'] !== undefined) console.log(told);
    expect({ uncaught, unhandled, reports, mistakes, seed: SEED }).toEqual({
      uncaught: [],
      unhandled: [],
      reports: [],
      mistakes: [],
      seed: SEED,
    });
    // On a busy machine the loop may stand still without our doing: then the thread has not worked either.
    const stalled = Math.min(longestBusyMs, longestDelayMs) > STALL_MS;
    expect({ stalled, ...told }).toEqual({ stalled: false, ...told });
    expect([...statuses.keys()]).toEqual(expect.arrayContaining([200, 400, 401, 404, 405]));
    expect(readFileSync(join(server.home, 'keeper.log'), 'utf8')).toBe('');
    expect(existsSync(`/proc/${server.keeperPid}`)).toBe(true);
    const after = await fetch(`${server.url}/api/v0/processes/list`, { headers: authorized });
    expect(after.status).toBe(200);
  },
  60_000 + REQUESTS * 20,
);
