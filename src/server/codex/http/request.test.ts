import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import {
  caller,
  TestSession,
  type Answer,
  type Note,
} from '../../../../test/support/codex-session.ts';
import { onCleanup } from '../../../../test/support/hosts.ts';
import { httpMethods } from './request.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const text = (answer: Answer): string =>
  Buffer.from(String(answer['bodyBase64']), 'base64').toString();

interface Heard {
  readonly method: string;
  readonly url: string;
  readonly headers: readonly string[];
  readonly body: string;
}

interface Origin {
  readonly url: string;
  readonly heard: Heard[];
  readonly sockets: Set<Socket>;
}

type Respond = (request: IncomingMessage, response: ServerResponse, body: string) => void;

async function origin(respond: Respond): Promise<Origin> {
  const heard: Heard[] = [];
  const sockets = new Set<Socket>();
  const server: Server = createServer((request, response) => {
    let body = '';
    request.setEncoding('latin1');
    request.on('data', (chunk: string) => (body += chunk));
    request.on('end', () => {
      const { method = '', url = '', rawHeaders } = request;
      heard.push({ method, url, headers: rawHeaders, body });
      respond(request, response, body);
    });
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onCleanup(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => {
      server.close(resolve);
    });
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, heard, sockets };
}

const echo: Respond = ({ method, url }, response, body) => {
  response.setHeader('date', 'D');
  response.setHeader('set-cookie', ['a=1', 'b=2']);
  response.end(`${method} ${url} ${body}`);
};

interface Client {
  readonly session: TestSession;
  readonly ask: (url: string, more?: Record<string, unknown>) => Promise<Answer>;
}

function client(env: Record<string, string> = {}, session = new TestSession()): Client {
  const call = caller(httpMethods({ env, cwd: '/', userHome: '/', version: '0' }), session);
  let count = 0;
  return {
    session,
    ask: (url, more) => {
      count += 1;
      return call('http/request', { method: 'GET', url, requestId: `r${count}`, ...more });
    },
  };
}

const deltas = ({ notes }: TestSession, id: string): Note['params'][] =>
  notes.filter(({ params }) => params['requestId'] === id).map(({ params }) => params);

const ended = (session: TestSession, id: string): Promise<Note> =>
  session.note(({ params }) => params['requestId'] === id && params['done'] === true);

describe('http/request (46)', () => {
  it('[CF12] a request is sent as asked and its response comes back whole, headers in order', async () => {
    const { url, heard } = await origin(echo);
    const { ask } = client();
    const answer = await ask(`${url}/x?q=1#fragment`, {
      method: 'POST',
      headers: [
        { name: 'X-A', value: '1' },
        { name: 'x-a', value: 'é' },
      ],
      bodyBase64: base64('body'),
    });
    expect(answer).toMatchObject({ status: 200 });
    expect(text(answer)).toBe('POST /x?q=1 body');
    const names = (answer['headers'] as { name: string; value: string }[]).filter(({ name }) =>
      ['date', 'set-cookie'].includes(name),
    );
    expect(names).toEqual([
      { name: 'date', value: 'D' },
      { name: 'set-cookie', value: 'a=1' },
      { name: 'set-cookie', value: 'b=2' },
    ]);
    const host = url.slice('http://'.length);
    const bytes = Buffer.from('é').toString('latin1');
    expect(heard[0]?.headers.join(' ')).toBe(
      `x-a 1 x-a ${bytes} accept */* host ${host} content-length 4 Connection keep-alive`,
    );
  });

  it('[CF12] nothing is decoded, and user-info of a URL becomes its header', async () => {
    const { url, heard } = await origin((_request, response) => {
      response.setHeader('content-encoding', 'gzip');
      response.setHeader('x-odd', Buffer.from('é').toString('latin1'));
      response.end(gzipSync('zipped'));
    });
    const { ask } = client();
    const answer = await ask(url.replace('//', '//u:p%40@'));
    expect(answer['bodyBase64']).toBe(gzipSync('zipped').toString('base64'));
    expect(JSON.stringify(answer['headers'])).not.toContain('x-odd');
    expect(heard[0]?.headers).toContain(`Basic ${base64('u:p@')}`);
  });

  it('[CF12] redirects are followed or not, with the method and body that belong to them', async () => {
    const { url, heard } = await origin((request, response, body) => {
      const status = /^\/(30\d)$/.exec(request.url ?? '')?.[1];
      if (status === undefined) return echo(request, response, body);
      response.writeHead(Number(status), { location: '/final#part' });
      response.end();
    });
    const { ask } = client();
    const stopped = await ask(`${url}/302`, { redirectPolicy: 'stop' });
    expect(stopped).toMatchObject({ status: 302, bodyBase64: '' });
    const sent = {
      bodyBase64: base64('b'),
      headers: [{ name: 'content-type', value: 'text/x' }],
    };
    for (const [method, status, then] of [
      ['GET', 302, 'GET /final '],
      ['POST', 301, 'GET /final '],
      ['POST', 302, 'GET /final '],
      ['PUT', 302, 'PUT /final b'],
      ['PUT', 303, 'GET /final '],
      ['POST', 307, 'POST /final b'],
      ['POST', 308, 'POST /final b'],
    ] as const) {
      const more = method === 'GET' ? { method } : { method, ...sent };
      expect(text(await ask(`${url}/${status}`, more))).toBe(then);
      expect(heard.at(-1)?.headers.includes('text/x')).toBe(then.endsWith('b'));
    }
  });

  it('[CF12] redirects end: after ten, at another scheme, or without a place to go', async () => {
    const { url, heard } = await origin(({ url: path }, response) => {
      const location = { '/loop': '/loop', '/ftp': 'ftp://x/' }[path ?? ''];
      response.writeHead(302, location === undefined ? {} : { location });
      response.end('here');
    });
    const { ask } = client();
    const failed = (reason: string): object => ({
      code: -32603,
      message: `http/request failed: ${reason}`,
    });
    expect(await ask(`${url}/loop`)).toEqual(failed('too many redirects'));
    expect(heard).toHaveLength(11);
    expect(await ask(`${url}/ftp`)).toEqual(
      failed('redirect target uses unsupported URL scheme: ftp'),
    );
    expect(text(await ask(`${url}/none`))).toBe('here');
  });

  it('[CF12] a body is streamed in numbered pieces of at most 1 MiB behind the answer, and ends once', async () => {
    const big = Buffer.alloc(3 * 1024 * 1024, 'abc');
    const { url } = await origin(({ url: path }, response) => {
      if (path === '/big') response.end(big);
      else if (path === '/empty') response.end();
      else response.write('part');
    });
    const { ask, session } = client();
    const answer = await ask(`${url}/big`, { streamResponse: true, requestId: 'big' });
    expect(answer).toMatchObject({ status: 200, bodyBase64: '' });
    expect(session.notes).toEqual([]);
    await ended(session, 'big');
    const pieces = deltas(session, 'big');
    expect(pieces.map(({ seq }) => seq)).toEqual(pieces.map((_, index) => index + 1));
    const bytes = pieces.map(({ deltaBase64 }) => Buffer.from(String(deltaBase64), 'base64'));
    expect(Math.max(...bytes.map(({ length }) => length))).toBeLessThanOrEqual(1024 * 1024);
    expect(Buffer.concat(bytes).equals(big)).toBe(true);
    expect(pieces.at(-1)).toEqual({
      requestId: 'big',
      seq: pieces.length,
      deltaBase64: '',
      done: true,
      error: null,
    });
    await ask(`${url}/empty`, { streamResponse: true, requestId: 'empty' });
    await ended(session, 'empty');
    expect(deltas(session, 'empty')).toHaveLength(1);
  });

  it('[CF12] the id of a stream is taken until its end', async () => {
    let finish = (): void => undefined;
    const { url } = await origin(({ url: path }, response) => {
      if (path !== '/slow') return response.end('ok');
      response.write('part');
      finish = () => void response.end();
      return undefined;
    });
    const { ask, session } = client();
    const stream = { streamResponse: true, requestId: 'dup' };
    await ask(`${url}/slow`, stream);
    expect(await ask(url, stream)).toEqual({
      code: -32602,
      message: 'http/request streamResponse requestId `dup` is already active',
    });
    expect(text(await ask(url, { requestId: 'dup' }))).toBe('ok');
    finish();
    await ended(session, 'dup');
    expect(await ask(url, stream)).toMatchObject({ status: 200 });
  });
});

describe('headers', () => {
  it('[CF13] what is no method, URL or header is refused before anything is sent', async () => {
    const { url, heard } = await origin(echo);
    const { ask } = client();
    const refusals: [string, Record<string, unknown>, string][] = [
      [url, { method: 'BA D' }, 'http/request method is invalid: invalid HTTP method'],
      [url, { method: '' }, 'http/request method is invalid: invalid HTTP method'],
      [url, { method: 'CONNECT' }, 'http/request method is invalid: invalid HTTP method'],
      ['ftp://x/', {}, 'http/request only supports http and https URLs, got ftp'],
      ['nope', {}, 'http/request url is invalid: relative URL without a base'],
      ['http://', {}, 'http/request url is invalid: empty host'],
      [url, { requestId: undefined }, 'missing field `requestId`'],
      [url, { bodyBase64: '%%' }, 'Invalid symbol 37, offset 0.'],
      [url, { redirectPolicy: 'x' }, 'unknown variant `x`, expected `follow` or `stop`'],
      [url, { headers: null }, 'invalid type: null, expected a sequence'],
      [url, { headers: [{ name: 'x' }] }, 'missing field `value`'],
    ];
    for (const [target, more, message] of refusals)
      expect(await ask(target, more)).toEqual({ code: -32602, message });
    for (const name of ['a b', '', 'a:b', 'a\r\nb', 'é'])
      expect(await ask(url, { headers: [{ name, value: '1' }] })).toEqual({
        code: -32602,
        message: 'http/request header name is invalid: invalid HTTP header name',
      });
    for (const value of ['a\r\nb: c', 'a\nb', 'a\rb', 'a\0b', '\x7f'])
      expect(await ask(url, { headers: [{ name: 'X', value }] })).toEqual({
        code: -32602,
        message: 'http/request header value is invalid for x: failed to parse header value',
      });
    expect(heard).toEqual([]);
  });

  it('[CF13] how a message is framed is not for the caller to say, so none is smuggled behind another', async () => {
    const { url, heard } = await origin(echo);
    const { ask } = client();
    const body = 'GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n';
    const answer = await ask(`${url}/x`, {
      method: 'POST',
      bodyBase64: base64(body),
      headers: [
        { name: 'Content-Length', value: '0' },
        { name: 'transfer-encoding', value: 'chunked' },
        { name: 'Connection', value: 'upgrade' },
        { name: 'upgrade', value: 'websocket' },
      ],
    });
    expect(text(answer)).toBe(`POST /x ${body}`);
    expect(heard).toHaveLength(1);
    expect(heard[0]?.headers.join(' ').toLowerCase()).not.toContain('upgrade');
  });

  it('[CF13] a value may end in a variable of the server, but never in a credential', async () => {
    const { url, heard } = await origin(echo);
    const env = {
      PLAIN: 'plain',
      EMPTY: '',
      LINES: 'a\nb',
      GITHUB_TOKEN: 'ght',
      OPENAI_API_KEY: 'no',
      CODEX_API_KEY: 'no',
      AWS_SECRET_ACCESS_KEY: 'no',
      HOLDFAST_TOKEN: 'no',
    };
    const { ask } = client(env);
    const from = (valueEnvVar: string): object => ({
      headers: [{ name: 'x-a', value: 'pre-', valueEnvVar }],
    });
    await ask(url, { ...from('PLAIN') });
    await ask(url, { ...from('GITHUB_TOKEN') });
    expect(heard.map(({ headers }) => headers[1])).toEqual(['pre-plain', 'pre-ght']);
    const refusals: [string, string][] = [
      ['NOTSET', 'requires executor environment variable NOTSET'],
      ['toString', 'requires executor environment variable toString'],
      ['EMPTY', 'requires a non-empty executor environment variable EMPTY'],
      ...[
        'OPENAI_API_KEY',
        'openai_api_key',
        'CODEX_API_KEY',
        'AWS_SECRET_ACCESS_KEY',
        'HOLDFAST_TOKEN',
      ].map((name): [string, string] => [name, `cannot use executor environment variable ${name}`]),
    ];
    for (const [name, message] of refusals)
      expect(await ask(url, { ...from(name) })).toEqual({
        code: -32602,
        message: `http/request header x-a ${message}`,
      });
    expect(await ask(url, { ...from('LINES') })).toMatchObject({ code: -32602 });
    // Whom a scoped token belongs to, the server's secrets do not.
    const scoped = client(env, new TestSession('/home-of-holdfast'));
    expect(await scoped.ask(url, { ...from('GITHUB_TOKEN') })).toEqual({
      code: -32602,
      message: 'http/request header x-a cannot use executor environment variable GITHUB_TOKEN',
    });
    expect(await scoped.ask(url, { ...from('PLAIN') })).toMatchObject({ status: 200 });
  });

  it('[CF13] what was meant for one origin is not sent to another', async () => {
    const there = await origin(echo);
    const { url, heard } = await origin(({ url: path }, response) => {
      response.writeHead(302, { location: path === '/away' ? `${there.url}/` : '/away' });
      response.end();
    });
    const { ask } = client();
    await ask(`${url}/near`, {
      headers: [
        { name: 'authorization', value: 'Bearer t' },
        { name: 'cookie', value: 'c' },
        { name: 'x-keep', value: 'k' },
      ],
    });
    expect(heard.map(({ headers }) => headers.includes('Bearer t'))).toEqual([true, true]);
    const [last] = there.heard;
    expect(last?.headers).toContain('k');
    expect(last?.headers).not.toContain('Bearer t');
    expect(last?.headers).not.toContain('c');
    expect(last?.headers).toContain(there.url.slice('http://'.length));
  });
});

describe('endings', () => {
  /** Answers a part and no more. */
  const stalling: Respond = ({ url }, response) => {
    if (url === '/silent') return;
    response.writeHead(200, { 'content-length': '100' });
    response.write('part');
    if (url === '/cut') setImmediate(() => response.destroy());
  };
  const bodyProblem = {
    code: -32603,
    message: 'failed to read http/request response body: error decoding response body',
  };

  it('[CF14] time ends a request, before and in the middle of its response', async () => {
    const { url } = await origin(stalling);
    const { ask, session } = client();
    expect(await ask(`${url}/silent`, { timeoutMs: 30 })).toEqual({
      code: -32603,
      message: `http/request failed: error sending request for url (${url}/silent)`,
    });
    expect(await ask(`${url}/stall`, { timeoutMs: 0 })).toMatchObject({ code: -32603 });
    expect(await ask(`${url}/stall`, { timeoutMs: 1500 })).toEqual(bodyProblem);
    await ask(`${url}/stall`, { timeoutMs: 1500, streamResponse: true, requestId: 's' });
    const { params } = await ended(session, 's');
    expect(params).toEqual({
      requestId: 's',
      seq: 2,
      deltaBase64: '',
      done: true,
      error: 'error decoding response body',
    });
  });

  it('[CF14] a body that is cut off is an error and never passes for whole', async () => {
    const { url } = await origin(stalling);
    const { ask, session } = client();
    expect(await ask(`${url}/cut`)).toEqual(bodyProblem);
    await ask(`${url}/cut`, { streamResponse: true, requestId: 's' });
    expect((await ended(session, 's')).params['error']).toBe('error decoding response body');
  });

  it('[CF14] nobody there is a failure that repeats no password', async () => {
    const { ask } = client();
    expect(await ask('http://u:secret@127.0.0.1:1/')).toEqual({
      code: -32603,
      message: 'http/request failed: error sending request for url (http://127.0.0.1:1/)',
    });
  });

  it('[CF14] the end of the connection ends its requests and streams, and leaves no socket', async () => {
    const { url, sockets, heard } = await origin(stalling);
    const { ask, session } = client();
    await ask(`${url}/stall`, { streamResponse: true, requestId: 's' });
    const silent = ask(`${url}/silent`);
    while (heard.length < 2)
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    session.close();
    expect(await silent).toMatchObject({ code: -32603 });
    while (sockets.size > 0)
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    expect(session.notes.filter(({ params }) => params['done'] === true)).toEqual([]);
  });

  it('[CF14] a body too large for one answer is refused while it comes, not when it is there', async () => {
    let written = 0;
    const { url } = await origin((_request, response) => {
      const piece = Buffer.alloc(1024 * 1024);
      const more = (): void => {
        if (response.destroyed || written > 400) return;
        written += 1;
        response.write(piece, more);
      };
      more();
    });
    const { ask } = client();
    expect(await ask(url)).toEqual({
      code: -32603,
      message: 'http/request failed: the response body is larger than 46137344 bytes; stream it',
    });
    expect(written).toBeLessThan(100);
  });

  it('[CF14] at most 128 requests of one connection are under way', async () => {
    const { url, heard } = await origin(stalling);
    const { ask, session } = client();
    const asked = Array.from({ length: 128 }, () => ask(`${url}/silent`));
    while (heard.length < 128)
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    expect(await ask(`${url}/silent`)).toEqual({
      code: -32603,
      message: 'http/request failed: 128 requests of this connection are active already',
    });
    session.close();
    for (const answer of await Promise.all(asked)) expect(answer).toMatchObject({ code: -32603 });
  });
});
