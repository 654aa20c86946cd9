// Large answers that nobody reads: counted, refused beyond a bound, and cut off after a time.

import { EventEmitter, once } from 'node:events';
import { IncomingMessage, request, ServerResponse, type Server } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { Cancellation } from '../../src/protocol/cancellation.ts';
import type { HoldfastError } from '../../src/protocol/errors.ts';
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

async function ask(door: Server, port: number, token = 'full'): Promise<Asked> {
  const connected = once(door, 'connection') as Promise<[Socket]>;
  const sent = request({
    port,
    host: '127.0.0.1',
    path: '/large',
    headers: { authorization: `Bearer ${token}` },
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

const codeOf = (error: unknown): string => (error as HoldfastError).code;

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

  it('[SV38] of one token two are under way; further ones are not made before these are read or given up', async () => {
    const made: string[] = [];
    const begun = new EventEmitter();
    const inTurn: Route = {
      ...large,
      handler: async (exchange) => {
        begun.emit('begun');
        await exchange.unread.begin(exchange);
        made.push(exchange.caller.tokenId);
        return large.handler(exchange);
      },
    };
    const unread = new UnreadAnswers({ perToken: 5 * BYTES });
    const { door, port } = await openDoor([inTurn], { unread });
    const [first, second] = [await ask(door, port), await ask(door, port)];
    const asked = async (): Promise<{ answer: Promise<Asked> }> => {
      const waits = once(begun, 'begun');
      const answer = ask(door, port);
      await waits;
      await new Promise(setImmediate);
      return { answer };
    };
    const [third, fourth] = [await asked(), await asked()];
    expect(made).toEqual(['admin', 'admin']);
    const other = await ask(door, port, 'scoped');
    expect(await readAll(other)).toBe(BYTES);
    expect(made).toEqual(['admin', 'admin', 'scoped']);
    expect(await readAll(first)).toBe(BYTES);
    expect(await readAll(await third.answer)).toBe(BYTES);
    expect(await readAll(await fourth.answer)).toBe(BYTES);
    second.response.destroy();
    await closed(second.socket);
    expect((await ask(door, port)).status).toBe(200);
    expect(made).toEqual(['admin', 'admin', 'scoped', 'admin', 'admin', 'admin']);
  });

  it('[SV38] those that wait are bounded, and one that is given up makes nothing', async () => {
    const unread = new UnreadAnswers();
    const gone = new Cancellation();
    const waiting = (signal = gone): Promise<void> =>
      unread.begin({
        caller: { tokenId: 'a', owner: 'a', admin: false },
        response: new ServerResponse(new IncomingMessage(new Socket())),
        gone: signal,
      });
    await waiting();
    await waiting();
    const others = Array.from({ length: 64 }, async () => waiting().catch(codeOf));
    expect(await waiting().catch(codeOf)).toBe('limit_reached');
    gone.abort();
    expect(new Set(await Promise.all(others))).toEqual(new Set(['aborted']));
  });

  it('[SV32] a client that takes nothing of one for a while is cut off', async () => {
    const unread = new UnreadAnswers({ stallMs: 100 });
    const { door, port } = await openDoor([large], { unread });
    const { socket } = await ask(door, port);
    await closed(socket);
    expect(unread.bytes).toBe(0);
  });
});
