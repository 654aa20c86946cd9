import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { BufferPool } from '../../../base/bytes/buffer-pool.ts';
import { systemClock } from '../../../base/clock.ts';
import { onCleanup } from '../../../../test/support/hosts.ts';
import { SocketWire } from './socket-wire.ts';

const BLOCK_BYTES = 100_000;

/** A wire over a real connection, and what its client receives. */
async function connected(): Promise<{ wire: SocketWire; client: WebSocket; received: Buffer[] }> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
  onCleanup(() => new Promise<void>((resolve) => server.close(() => resolve())));
  await once(server, 'listening');
  const accepted = once(server, 'connection');
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  onCleanup(() => client.terminate());
  const received: Buffer[] = [];
  client.on('message', (data: Buffer, binary: boolean) => {
    expect(binary).toBe(false);
    received.push(data);
  });
  await once(client, 'open');
  const [socket, request] = (await accepted) as [WebSocket, { socket: import('node:net').Socket }];
  const wire = new SocketWire(
    {
      socket,
      stream: request.socket,
      peer: 'test',
      clock: systemClock,
      blocks: new BufferPool(BLOCK_BYTES, 2),
    },
    { received: () => undefined, ended: () => undefined },
  );
  return { wire, client, received };
}

async function until(client: WebSocket, received: readonly Buffer[], count: number): Promise<void> {
  while (received.length < count) await once(client, 'message');
}

describe('a codex connection on a WebSocket', () => {
  it('[FD10] messages of every size arrive whole and in order, between answers that are sent as text', async () => {
    const { wire, client, received } = await connected();
    const sizes = [1, 125, 126, 127, 65_535, 65_536, 65_537, 99_000, BLOCK_BYTES + 1, 300_000, 2];
    wire.batch(() => {
      for (const [index, size] of sizes.entries()) {
        wire.allocate(size).fill(0x61 + index);
        if (index % 3 === 0) wire.send(`answer ${index}`);
      }
    });
    wire.send('last');
    const reported = sizes.flatMap((size, index) => [
      Buffer.alloc(size, 0x61 + index).toString(),
      ...(index % 3 === 0 ? [`answer ${index}`] : []),
    ]);
    await until(client, received, reported.length + 1);
    expect(received.map(String)).toEqual([...reported, 'last']);
  });

  it('[FD11] memory is used again only when it has left: a client that reads late gets what was sent', async () => {
    const { wire, client, received } = await connected();
    client.pause();
    const count = 400;
    for (let index = 0; index < count; index += 1)
      wire.batch(() => wire.allocate(60_000).fill(index % 127));
    expect(wire.backpressure()).toBeInstanceOf(Promise);
    const backpressure = wire.backpressure();
    client.resume();
    await backpressure;
    await until(client, received, count);
    for (const [index, data] of received.entries())
      expect(data.equals(Buffer.alloc(60_000, index % 127))).toBe(true);
    expect(wire.backpressure()).toBeUndefined();
  });

  it('[FD11] a connection that is over takes no more and holds nobody up', async () => {
    const { wire, client } = await connected();
    client.terminate();
    await once(client, 'close');
    for (let index = 0; index < 100; index += 1) wire.batch(() => wire.allocate(90_000).fill(0));
    await wire.backpressure();
    expect(wire.backpressure()).toBeUndefined();
  });
});
