// Large answers that nobody reads: counted, refused beyond a bound, and cut off after a time.

import { once } from 'node:events';
import { request, type IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { UnreadAnswers } from '../../src/server/http/unread-answers.ts';
import { JsonText, type Route } from '../../src/server/http/router.ts';
import { openDoor } from '../support/coder-client.ts';
import { onCleanup } from '../support/hosts.ts';

const MiB = 1024 * 1024;
/** More than the kernel takes for a client that does not read. */
const BYTES = 24 * MiB;
const large: Route = {
  method: 'GET',
  path: '/large',
  handler: async () => new JsonText(`"${'x'.repeat(BYTES - 2)}"`),
};

interface Asked {
  readonly status: number;
  readonly response: IncomingMessage;
  /** The server's side of the connection. */
  readonly socket: Socket;
}

async function ask(door: Server, port: number): Promise<Asked> {
  const connected = once(door, 'connection') as Promise<[Socket]>;
  const sent = request({
    port,
    host: '127.0.0.1',
    path: '/large',
    headers: { authorization: 'Bearer full' },
    agent: false,
  });
  onCleanup(() => void sent.destroy());
  sent.on('error', () => undefined);
  sent.end();
  const [socket] = await connected;
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.on('error', () => undefined);
  return { status: response.statusCode ?? 0, response, socket };
}

/** With what follows from it. An error before the end is part of it. */
async function closed(socket: Socket): Promise<void> {
  if (!socket.closed)
    await new Promise<void>((resolve) => {
      socket.once('close', () => resolve());
    });
  await new Promise(setImmediate);
}

async function readAll({ response }: Asked): Promise<number> {
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) bytes += chunk.length;
  return bytes;
}

describe('answers', () => {
  it('[SV31] that are not read are held up to a bound per token; then the next is refused, and later not', async () => {
    const unread = new UnreadAnswers({ perToken: 2.5 * BYTES });
    const { door, port } = await openDoor([large], { unread });
    const [first, second] = [await ask(door, port), await ask(door, port)];
    expect([first.status, second.status, unread.bytes]).toEqual([200, 200, 2 * BYTES]);
    const third = await ask(door, port);
    expect([third.status, third.response.headers['retry-after']]).toEqual([429, '1']);
    await readAll(third);
    // One is read, one is given up: both make unread.
    expect(await readAll(first)).toBe(BYTES);
    second.response.destroy();
    await closed(second.socket);
    const fourth = await ask(door, port);
    expect([fourth.status, unread.bytes, await readAll(fourth)]).toEqual([200, BYTES, BYTES]);
  });

  it('[SV31] of all tokens together have a bound, and one that exceeds it alone is too large', () => {
    const unread = new UnreadAnswers({ perToken: 10, total: 15 });
    const free = unread.take('a', 10);
    expect(() => unread.take('a', 1)).toThrow(/wait to be read/);
    unread.take('b', 5);
    expect(() => unread.take('c', 1)).toThrow(/wait to be read/);
    expect(() => unread.take('c', 11)).toThrow(/limit is 10/);
    free();
    unread.take('c', 10);
    expect(unread.bytes).toBe(15);
  });

  it('[SV32] a client that takes nothing of one for a while is cut off', async () => {
    const unread = new UnreadAnswers({ stallMs: 100 });
    const { door, port } = await openDoor([large], { unread });
    const { socket } = await ask(door, port);
    await closed(socket);
    expect(unread.bytes).toBe(0);
  });
});
