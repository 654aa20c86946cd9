import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { canFinishUnwritten, finishUnwritten } from './unwritten-finish.ts';

it('[SV70] a response that the keeper has written is finished without a byte, and the next request is read', async () => {
  expect(canFinishUnwritten()).toBe(true);
  const server = createServer((request, response) => {
    if (request.url === '/first') finishUnwritten(response);
    else response.end('second');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.write(
    'GET /first HTTP/1.1\r\nHost: x\r\n\r\nGET /second HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  );
  let text = '';
  client.on('data', (chunk: Buffer) => (text += chunk.toString()));
  await once(client, 'close');
  expect(text.match(/HTTP\/1\.1 /g)).toHaveLength(1);
  expect(text).toContain('second');
  server.close();
});

it('[SV70] the self-check refuses a Node whose responses would be written', () => {
  expect(canFinishUnwritten((response) => void response.end('twice'))).toBe(false);
  expect(
    canFinishUnwritten(() => {
      throw new Error('this Node has no socket');
    }),
  ).toBe(false);
  expect(canFinishUnwritten(() => undefined)).toBe(false);
});
