import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serve, type Served } from '../support/coder-client.ts';
import { CodexClient } from '../support/codex-client.ts';
import { onCleanup } from '../support/hosts.ts';

let served: Served;

beforeAll(async () => {
  served = await serve();
});

afterAll(async () => {
  await served.stop();
});

const connect = (token = served.token): Promise<CodexClient> =>
  CodexClient.ready(`ws://127.0.0.1:${served.port}/codex?token=${token}`);

interface Delta {
  readonly requestId: string;
  readonly seq: number;
  readonly deltaBase64: string;
  readonly done: boolean;
  readonly error: string | null;
}

describe('requests through the codex door', () => {
  it('[CF12] a streamed body follows its answer in order', async () => {
    const origin = createServer((_request, response) => {
      response.write('part1');
      response.end('end');
    });
    await new Promise<void>((resolve) => {
      origin.listen(0, '127.0.0.1', resolve);
    });
    onCleanup(() => {
      origin.closeAllConnections();
      origin.close();
    });
    const client = await connect();
    const answer = await client.call('http/request', {
      method: 'GET',
      url: `http://127.0.0.1:${(origin.address() as AddressInfo).port}/`,
      requestId: 'r',
      redirectPolicy: 'stop',
      timeoutMs: 30_000,
      streamResponse: true,
    });
    expect(answer).toMatchObject({ status: 200, bodyBase64: '' });
    const deltas = (): Delta[] =>
      client.notifications
        .filter(({ method }) => method === 'http/request/bodyDelta')
        .map(({ params }) => params as unknown as Delta);
    await client.until(() => deltas().some(({ done }) => done));
    expect(deltas().map(({ seq }) => seq)).toEqual(deltas().map((_, index) => index + 1));
    const body = deltas().map(({ deltaBase64 }) => Buffer.from(deltaBase64, 'base64').toString());
    expect(body.join('')).toBe('part1end');
    // The answer was on the wire before the first piece.
    const first = client.raw.findIndex((text) => text.includes('bodyDelta'));
    const result = client.raw.findIndex((text) => text.includes('"bodyBase64":""'));
    expect(result).toBeLessThan(first);
  });

  it('[CF13] our own server is asked without any token of ours', async () => {
    const url = `http://127.0.0.1:${served.port}/v1/processes`;
    for (const token of [served.token, served.tokens.create('chat:http').token]) {
      const client = await connect(token);
      const ask = (headers: object[]): Promise<unknown> =>
        client.call('http/request', { method: 'GET', url, requestId: 'self', headers });
      expect(await ask([])).toMatchObject({ status: 401 });
      // A caller may send what it already knows.
      const own = [{ name: 'authorization', value: `Bearer ${token}` }];
      expect(await ask(own)).toMatchObject({ status: 200 });
    }
    expect(served.reports).toEqual([]);
  });
});
