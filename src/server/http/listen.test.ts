import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { connect, type Socket } from 'node:net';

import type * as Koffi from 'koffi';
import { expect, it } from 'vitest';

import { closeDoor, listenTcp } from './listen.ts';

const [IPPROTO_TCP, TCP_CONGESTION] = [6, 13];

/** How a connection sends, asked of the kernel. */
function wayOf(socket: Socket): string {
  const koffi = createRequire(import.meta.url)('koffi') as typeof Koffi;
  const getsockopt = koffi
    .load('libc.so.6')
    .func('int getsockopt(int fd, int level, int name, void *value, void *bytes)') as (
    ...values: unknown[]
  ) => number;
  const { fd } = (socket as Socket & { readonly _handle: { readonly fd: number } })._handle;
  const name = Buffer.alloc(16);
  expect(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, new Uint32Array([16]))).toBe(0);
  return name.toString('latin1', 0, name.indexOf(0));
}

it('[SV24] a caller on the same machine is sent to without a pace of the network', async () => {
  const server = createServer();
  const port = await listenTcp(server, 0, '127.0.0.1');
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const caller = connect(port, '127.0.0.1');
  const [socket] = await accepted;
  expect(wayOf(socket)).toBe('reno');
  caller.destroy();
  await closeDoor(server);
});
