import { fstatSync } from 'node:fs';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { requirePosix } from '../../test/support/recorder.ts';
import { checkDescriptors, descriptorOf, socketDescriptorsWork } from './socket-descriptor.ts';

const posix = requirePosix();

it('[P25] the descriptor of a connected socket is that of a socket, and of a closed one there is none', async () => {
  expect(socketDescriptorsWork(posix)).toBe(true);
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [accepted] = (await once(server, 'connection')) as [Socket];
  expect(fstatSync(descriptorOf(posix, accepted) ?? -1).isSocket()).toBe(true);
  accepted.destroy();
  await once(accepted, 'close');
  expect(descriptorOf(posix, accepted)).toBeUndefined();
  client.destroy();
  server.close();
});

it('[P25] the self-check refuses a Node that shows no descriptor, or another', () => {
  expect(checkDescriptors(posix, () => undefined)).toBe(false);
  expect(checkDescriptors(posix, () => 0)).toBe(false);
});
