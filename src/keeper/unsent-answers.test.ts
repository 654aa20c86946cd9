import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { UnsentAnswers } from './unsent-answers.ts';
import { FrameReader } from './frames.ts';
import type { Answer } from './messages.ts';

const MiB = 1024 * 1024;
const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0).toReversed()) cleanup();
});

/** Both ends of a connection; the client does not read yet. */
async function pair(): Promise<{ near: Socket; client: Socket }> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-answers-'));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  const server = createServer({ pauseOnConnect: true });
  server.listen(join(folder, 'socket'));
  await once(server, 'listening');
  const connected = once(server, 'connection') as Promise<[Socket]>;
  const client = connect(join(folder, 'socket'));
  const [near] = await connected;
  cleanups.push(() => {
    client.destroy();
    near.destroy();
    server.close();
  });
  return { near, client };
}

async function readAnswers(client: Socket, count: number): Promise<Answer[]> {
  const reader = new FrameReader();
  const answers: Answer[] = [];
  for await (const chunk of client) {
    answers.push(...(reader.push(chunk as Buffer) as Generator<Answer>));
    if (answers.length === count) break;
  }
  return answers;
}

it('[K36] answers that nobody reads wait unencoded, and no request is read meanwhile', async () => {
  const { near, client } = await pair();
  const unsent = new UnsentAnswers(near);
  near.on('data', () => undefined);
  const text = 'x'.repeat(MiB);
  for (let id = 0; id < 100; id += 1) unsent.send({ id, result: { text } });
  expect(near.writableLength).toBeLessThan(6 * MiB);
  expect(near.isPaused()).toBe(true);
  const answers = await readAnswers(client, 100);
  expect(answers.map(({ id }) => id)).toEqual(Array.from({ length: 100 }, (_, id) => id));
});

it('[K36] large answers are made one in a turn, and only while the buffer is below its limit', async () => {
  const { near, client } = await pair();
  const unsent = new UnsentAnswers(near);
  let made = 0;
  const one = async (id: number): Promise<void> => {
    const { signal } = new AbortController();
    const result = await unsent.make({ owner: 'a', signal }, async () => {
      made += 1;
      return 'x'.repeat(MiB);
    });
    unsent.send({ id, result });
  };
  const all = Array.from({ length: 50 }, (_, id) => one(id));
  await all[0];
  expect(made).toBeLessThan(6);
  const answers = await readAnswers(client, 50);
  await Promise.all(all);
  expect([made, answers.length]).toEqual([50, 50]);
});

it('[K72] of searches whose answers nobody reads only a few are made; other owners are not held up by them', async () => {
  const { near, client } = await pair();
  const unsent = new UnsentAnswers(near);
  const { signal } = new AbortController();
  let made = 0;
  let over = (): void => undefined;
  const held = new Promise<void>((resolve) => (over = resolve));
  const one = async (owner: string, id: number, until?: Promise<void>): Promise<void> => {
    const result = await unsent.search({ owner, signal }, async () => {
      made += 1;
      await until;
      return 'x'.repeat(4 * MiB);
    });
    unsent.send({ id, result });
  };
  const slow = Array.from({ length: 20 }, (_, id) => one('a', id, held));
  expect(made).toBe(4);
  await one('b', 20);
  expect(made).toBe(5);
  over();
  await Promise.all(slow.slice(0, 4));
  expect(made).toBe(5);
  const answers = await readAnswers(client, 21);
  await Promise.all(slow);
  expect([made, answers.length]).toEqual([21, 21]);
});

it('[K72] a search that waits for its turn is given up when the client goes', async () => {
  const { near } = await pair();
  const unsent = new UnsentAnswers(near);
  const gone = new AbortController();
  const { signal } = gone;
  const never = new Promise<void>(() => undefined);
  for (let id = 0; id < 4; id += 1) void unsent.search({ owner: 'a', signal }, () => never);
  const last = unsent.search({ owner: 'a', signal }, () => never);
  gone.abort();
  unsent.close();
  await expect(last).rejects.toMatchObject({ code: 'aborted' });
});

it('[H93] large answers are made for owners in turn, whatever the order of requests', async () => {
  const { near } = await pair();
  const unsent = new UnsentAnswers(near);
  const { signal } = new AbortController();
  const order: string[] = [];
  const one = (owner: string): Promise<void> =>
    unsent.make({ owner, signal }, async () => {
      order.push(owner);
      await new Promise((resolve) => void setImmediate(resolve));
    });
  await Promise.all([...Array.from({ length: 6 }, () => one('bob')), one('alice'), one('alice')]);
  // Two of bob's are under way when she asks.
  expect(order.slice(0, 3)).toEqual(['bob', 'bob', 'alice']);
  expect(order).toHaveLength(8);
});

it('[K35] an answer above the limit of a frame becomes an error, and the next one follows', async () => {
  const { near, client } = await pair();
  const unsent = new UnsentAnswers(near);
  unsent.send({ id: 1, result: 'x'.repeat(33 * MiB) });
  unsent.send({ id: 2, result: 'small' });
  const answers = await readAnswers(client, 2);
  expect(answers).toMatchObject([
    { id: 1, error: { code: 'too_large' } },
    { id: 2, result: 'small' },
  ]);
});
