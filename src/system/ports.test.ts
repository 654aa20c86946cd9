import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { fileURLToPath } from 'node:url';

import { afterEach, beforeEach, expect, test } from 'vitest';

import { Nursery, planOf } from '../../test/support/recorder.ts';
import { startPipeChild } from '../host/child/pipe-child.ts';
import { isListening, listeningPorts } from './ports.ts';

const listenProgram = fileURLToPath(new URL('../../test/programs/listen.mjs', import.meta.url));
let nursery: Nursery;
const servers: Server[] = [];

beforeEach(() => {
  nursery = new Nursery();
});
afterEach(async () => {
  await nursery.endAll();
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
});

async function listen(host: string): Promise<number> {
  const server = createServer();
  servers.push(server);
  server.listen(0, host);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

test('[N1] listening sockets are found with port, address and process', async () => {
  const expected = [];
  for (const address of ['127.0.0.1', '0.0.0.0', '::1', '::']) {
    expected.push({ port: await listen(address), address, pid: process.pid });
  }
  const found = listeningPorts([process.pid]);
  for (const row of expected) expect(found).toContainEqual(row);
});

test('[N1] each is listed with the process that holds it, and only for the given processes', async () => {
  const { child, recorder } = await nursery.start(
    startPipeChild,
    planOf([process.execPath, listenProgram], { stdin: 'pipe' }),
  );
  await recorder.printed('\n');
  const port = Number(recorder.text());
  expect(listeningPorts([child.pid])).toEqual([{ port, address: '127.0.0.1', pid: child.pid }]);
  expect(listeningPorts([process.pid]).some((row) => row.port === port)).toBe(false);
  child.endInput();
  await recorder.done();
  expect(listeningPorts([child.pid])).toEqual([]);
});

test('[N2] a listener on a port is found without reading descriptors', async () => {
  const port = await listen('127.0.0.1');
  expect(isListening(port, process.pid)).toBe(true);
  const server = servers.pop();
  await new Promise((resolve) => server?.close(resolve));
  expect(isListening(port, process.pid)).toBe(false);
});

test('[N2] a process that has ended listens nowhere', async () => {
  const { child, recorder } = await nursery.start(startPipeChild, planOf(['/bin/true']));
  await recorder.done();
  expect(isListening(1, child.pid)).toBe(false);
  expect(listeningPorts([child.pid, 0, -1])).toEqual([]);
});
