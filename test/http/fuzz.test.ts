// Mutated requests against a whole server: nothing it is sent makes it fall, stumble or stand still. A failure names its
// seed; SEED runs it again, FUZZ_REQUESTS makes it longer (`npm run test:fuzz`: a million).

import { existsSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { dice, mutate, SEED, type Dice } from '../support/random.ts';
import { sized } from '../support/slow.ts';
import { watchedServer, type Ready } from '../support/watched-server.ts';

/** A line of a log that says what went wrong. */
const PROBLEM = /^\S+ (?:warn|error) /m;

const REQUESTS = Number(process.env['FUZZ_REQUESTS'] ?? sized(6000, 20_000));
const CONNECTIONS = 48;
/** How many are sent at once over a connection, unless one of them may stay unanswered. */
const AT_ONCE = 24;
/** What is not answered by then may lack a part: the end of sending tells the server that none will follow. */
const PATIENCE_MS = 250;
/** What is not answered by then waits for a process. */
const END_MS = 500;
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
    () => ': '.padEnd(size(roll, 200_000), 'x'),
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

/** Seldom large: what is in a large body was in a small one before. */
function size(roll: Dice, most: number): number {
  return roll.below(roll.chance(0.02) ? most : most / 500);
}

function body(roll: Dice): string {
  const bodies = [
    () => '{"command":":"}',
    () => '{"command":":","idempotency_key":"k","env":{"A":"b"}}',
    () => '{"signal":"kill"}',
    () => '{"idempotency_key":"k","signal":"kill"}',
    () => JSON.stringify(objectOf(roll)),
    () => JSON.stringify({ command: ':', ...objectOf(roll) }),
    () => '['.repeat(size(roll, 100_000)),
    () => `{"command":":","x":${'{"a":'.repeat(size(roll, 5000))}`,
    () => `{"command":":"}${roll.pick(TOKENS)}`,
  ];
  return roll.chance(0.5)
    ? mutate(roll.pick(bodies)(), { roll, tokens: TOKENS, times: 1 + roll.below(3) })
    : roll.pick(bodies)();
}

interface Attempt {
  readonly bytes: Buffer;
  /** Nothing may come behind it on its connection: it may not end, or its answer may not. */
  readonly last: boolean;
}

const STARTS = /^POST .*\/(processes|start)$/;

function request(roll: Dice, { url, token, routes }: Ready, ids: readonly string[]): Attempt {
  // A start costs as much as fifty other requests: there are enough of them when every tenth pick of one stays.
  const route = roll.pick(routes);
  const kept = STARTS.test(route) && roll.chance(0.9) ? roll.pick(routes) : route;
  const [method = 'GET', pattern = '/'] = kept.split(' ');
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
    ? mutate(path, { roll, tokens: TOKENS, times: 1 + roll.below(3) })
    : path + roll.pick(queries);
  const sent = method === 'GET' && roll.chance(0.9) ? '' : body(roll);
  const chats = ['', '', 'Coder-Chat-Id: 6f1d4b1e-8d3a-4d0e-9a53-1c1f7c0b5e11\r\n'];
  const [known, typed, itself] = [roll.chance(0.9), roll.chance(0.8), roll.chance(0.95)];
  const head = [
    `${itself ? method : roll.pick(['GET', 'PUT', 'PATCH', 'TRACE', 'CONNECT'])} ${target} HTTP/1.1\r\n`,
    `Host: ${new URL(url).host}\r\n`,
    known ? `Authorization: Bearer ${token}\r\n` : '',
    typed ? 'Content-Type: application/json\r\n' : '',
    roll.pick(chats),
    sent === '' ? '' : `Content-Length: ${Buffer.byteLength(sent, 'utf8')}\r\n`,
    '\r\n',
  ].join('');
  // A body that was refused unread ends its connection; some are waited for, or do not end.
  const unread = sent !== '' && !(known && typed && itself && target.startsWith(path));
  const endless = /wait|follow|bytes/.test(target) || !itself || sent.includes('for');
  const whole = Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(sent)]);
  if (!roll.chance(0.15)) return { bytes: whole, last: unread || endless };
  const changed = { roll, tokens: TOKENS, times: 1 + roll.below(4) };
  const bytes = Buffer.from(mutate(whole.toString('latin1'), changed), 'latin1');
  return { bytes, last: true };
}

class Sender {
  private readonly port: number;
  private socket: Socket | undefined;

  constructor(port: number) {
    this.port = port;
  }

  /** Sends requests behind one another; the answers that came, as far as they came in time. */
  async send(attempts: readonly Attempt[]): Promise<Answers> {
    const socket = this.open();
    const answers = new Answers(attempts.length);
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        socket.removeAllListeners();
        socket.on('error', () => undefined);
        resolve();
      };
      let timer = setTimeout(() => {
        socket.end();
        timer = setTimeout(done, END_MS);
      }, PATIENCE_MS);
      socket.on('data', (chunk: Buffer) => {
        answers.push(chunk);
        if (answers.done) done();
        else timer.refresh();
      });
      socket.on('error', done);
      socket.on('close', done);
      socket.write(Buffer.concat(attempts.map(({ bytes }) => bytes)));
    });
    if (!answers.goesOn || !socket.writable) this.close();
    return answers;
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

/** Answers as they come over one connection. */
class Answers {
  readonly statuses: number[] = [];
  /** One of them was a mistake of ours. */
  mistake = false;
  private readonly wanted: number;
  private rest = '';
  private open = true;

  constructor(wanted: number) {
    this.wanted = wanted;
  }

  get done(): boolean {
    return !this.open || this.statuses.length >= this.wanted;
  }

  /** Everything was answered, exactly, and more may be asked. */
  get goesOn(): boolean {
    return this.open && this.rest === '' && this.statuses.length === this.wanted;
  }

  push(chunk: Buffer): void {
    this.rest += chunk.toString('latin1');
    for (let headEnd = this.headEnd(); headEnd >= 0 && this.open; headEnd = this.headEnd()) {
      const head = this.rest.slice(0, headEnd + 2);
      const length = /\r\nContent-Length: (\d+)/i.exec(head)?.[1];
      const end = headEnd + 4 + Number(length ?? 0);
      if (this.rest.length < end) return;
      const status = Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1] ?? 0);
      if (status >= 200) {
        this.statuses.push(status);
        this.mistake ||= status === 500 && this.rest.slice(headEnd, end).includes(OUR_MISTAKE);
        // Without a length it is a stream that does not end.
        this.open = length !== undefined && !/\r\nConnection: close/i.test(head);
      }
      this.rest = this.rest.slice(end);
    }
  }

  private headEnd(): number {
    return this.rest.indexOf('\r\n\r\n');
  }
}

const OUR_MISTAKE = 'Something went wrong inside';

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
    let sent = 0;
    const worker = async (_: unknown, index: number): Promise<void> => {
      const roll = dice(SEED * CONNECTIONS + index);
      const sender = new Sender(port);
      while (left > 0) {
        const attempts: Attempt[] = [];
        do attempts.push(request(roll, server, ids));
        while (attempts.length < AT_ONCE && attempts.at(-1)?.last === false);
        left -= attempts.length;
        const answers = await sender.send(attempts);
        sent += attempts.length;
        for (const status of answers.statuses)
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
        const unanswered = attempts.length - answers.statuses.length;
        statuses.set(0, (statuses.get(0) ?? 0) + unanswered);
        if (answers.mistake && mistakes.length < 5)
          mistakes.push(
            attempts.map(({ bytes }) => bytes.toString('latin1').slice(0, 2000)).join('\n'),
          );
      }
      sender.close();
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, worker));
    const { uncaught, unhandled, reports, longestBusyMs, longestDelayMs, rssBytes } =
      await server.seen();
    const reported = {
      seed: SEED,
      sent,
      rssMb: Math.round(rssBytes / 1e6),
      statuses: Object.fromEntries(statuses),
      longestBusyMs,
      longestDelayMs,
    };
    const measured = process.env['FUZZ_REQUESTS'] !== undefined;
    if (measured) console.log(reported);
    expect({ uncaught, unhandled, reports, mistakes, seed: SEED }).toEqual({
      uncaught: [],
      unhandled: [],
      reports: [],
      mistakes: [],
      seed: SEED,
    });
    // On a busy machine the loop may stand still without our doing: then the thread has not worked either.
    // The long run on a calm machine measures this; the suite does not.
    const stalled = measured && Math.min(longestBusyMs, longestDelayMs) > STALL_MS;
    expect({ stalled, ...reported }).toEqual({ stalled: false, ...reported });
    expect([...statuses.keys()]).toEqual(expect.arrayContaining([200, 400, 401, 404, 405]));
    expect(readFileSync(join(server.home, 'keeper.log'), 'utf8')).not.toMatch(PROBLEM);
    expect(existsSync(`/proc/${server.keeperPid}`)).toBe(true);
    const after = await fetch(`${server.url}/api/v0/processes/list`, { headers: authorized });
    expect(after.status).toBe(200);
  },
  60_000 + REQUESTS * 4,
);
