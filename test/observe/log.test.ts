// The logs of keeper and server, as their files have them.

import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { Place, Running } from '../support/command-line.ts';

const place = new Place();
afterAll(() => place.close());

interface Entry {
  readonly level: string;
  readonly part: string;
  readonly event: string;
  readonly message: string;
}

function entriesOf(name: string): Entry[] {
  const text = readFileSync(join(place.home, name), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry);
}

/** What a server says when it serves. */
async function ready(server: Running): Promise<unknown> {
  await server.until('stdout', '\n');
  return JSON.parse(server.text('stdout'));
}

describe('the logs of a home', () => {
  it('[LOG1] an unknown level or format is refused with the ones that exist', async () => {
    for (const [name, known] of [
      ['HOLDFAST_LOG', 'debug, info, warn, error'],
      ['HOLDFAST_LOG_FORMAT', 'text, json'],
    ] as const) {
      const env = { ...place.env, [name]: 'loud' };
      const { code, stderr } = await new Running(['run', 'true'], { env }).ended;
      expect(code).toBe(125);
      expect(stderr).toContain(`${name} "loud" is not one of ${known}.`);
    }
  });

  it('[LOG3] a server logs start, requests and end; after it was killed, the next one appends', async () => {
    const env = { ...place.env, HOLDFAST_LOG: 'debug', HOLDFAST_LOG_FORMAT: 'json' };
    const first = new Running(['serve', '--json'], { env });
    const { url, pid } = (await ready(first)) as { url: string; pid: number };
    const { stdout: token } = await new Running(['token', 'admin'], { env }).ended;
    const headers = { authorization: `Bearer ${token.trim()}` };
    expect((await fetch(`${url}/v1/health?q=canary-query`, { headers })).status).toBe(400);
    expect((await fetch(`${url}/v1/health`, { headers })).status).toBe(200);
    expect(
      (await fetch(`${url}/v1/health`, { headers: { authorization: 'Bearer x' } })).status,
    ).toBe(401);
    process.kill(pid, 'SIGTERM');
    await first.ended;
    const server = entriesOf('server.log');
    expect(server.map(({ event }) => event)).toEqual([
      'start',
      'request',
      'request',
      'request',
      'stop',
    ]);
    expect(server.map(({ part }) => part)).toEqual(Array.from(server, () => 'server'));
    expect(server[0]?.message).toContain(`pid ${pid}, version`);
    expect(server[1]).toEqual(
      expect.objectContaining({ level: 'debug', status: 400, refusal: 'invalid_input' }),
    );
    expect(server[2]).toEqual(expect.objectContaining({ status: 200, route: 'GET /v1/health' }));
    expect(server[3]).toEqual(expect.objectContaining({ status: 401, refusal: 'unauthorized' }));
    const text = readFileSync(join(place.home, 'server.log'), 'utf8');
    expect([text.includes('canary-query'), text.includes(token.trim())]).toEqual([false, false]);
    expect(statSync(join(place.home, 'server.log')).mode & 0o777).toBe(0o600);
    const second = new Running(['serve', '--json'], { env });
    const next = (await ready(second)) as { pid: number };
    process.kill(next.pid, 'SIGKILL');
    await second.ended;
    const after = entriesOf('server.log').slice(server.length);
    expect(after.map(({ event }) => event)).toEqual(['start']);
    expect(entriesOf('keeper.log')[0]).toEqual(
      expect.objectContaining({ part: 'keeper', event: 'start', level: 'info' }),
    );
  });
});
