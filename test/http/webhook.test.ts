// The completion webhook: a real receiver that says yes, no or nothing, and a server that is replaced in between.
import { createHmac } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { serve, type Served } from '../support/coder-client.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { failure, onCleanup, stopKeeper, temporaryFolder } from '../support/hosts.ts';
import { turnsUntil } from '../support/recorder.ts';

interface Delivery {
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  readonly notice: Record<string, unknown>;
}

class Receiver {
  readonly deliveries: Delivery[] = [];
  /** The status for a notice; 0: the connection is cut. */
  answer: (notice: Record<string, unknown>) => number = () => 204;
  private readonly server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const notice = JSON.parse(body) as Record<string, unknown>;
      const status = this.answer(notice);
      this.deliveries.push({ headers: request.headers, body, notice });
      if (status === 0) request.socket.destroy();
      else response.writeHead(status, status === 302 ? { location: '/elsewhere' } : {}).end('x');
    });
  });

  async open(): Promise<string> {
    await new Promise<void>((resolve) => {
      this.server.listen(0, '127.0.0.1', resolve);
    });
    onCleanup(() => {
      this.server.closeAllConnections();
      this.server.close();
    });
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/hook`;
  }

  async count(wanted: number): Promise<void> {
    await turnsUntil(() => this.deliveries.length >= wanted);
  }

  ids(): unknown[] {
    return this.deliveries.map(({ notice }) => notice['id']);
  }
}

const CHAT = '6f1d4b1e-8d3a-4d0e-9a53-1c1f7c0b5e11';
const PARENT = 'a6a3a1f0-0b3e-4f5c-8d69-3a6f0c6fd7a2';

async function served(options: Parameters<typeof serve>[0]): Promise<Served> {
  const made = await serve(options);
  onCleanup(() => made.stop());
  return made;
}

/** What a server puts off until it has started is done: from here on only the webhook waits by this clock. */
function pastStart(clock: FakeClock): void {
  while (clock.pending > 0) clock.advance(1000);
}

describe('the completion webhook', () => {
  it('[SV8] gets each exit with chat, ancestors and directory, signed, without the output', async () => {
    const receiver = new Receiver();
    const one = await served({ webhook: { url: await receiver.open() } });
    const chat = one.chat(CHAT, JSON.stringify([PARENT]));
    const id = await chat.start({ command: 'echo secret-output; exit 3', workdir: '/' });
    await receiver.count(1);
    const [first] = receiver.deliveries;
    expect(first?.notice).toMatchObject({
      type: 'completion',
      number: 1,
      id,
      owner: `chat:${CHAT}`,
      outcome: { kind: 'exit', code: 3 },
      chat: { id: CHAT, ancestors: [PARENT] },
      workdir: '/',
    });
    expect(first?.notice).not.toHaveProperty('lastLines');
    expect(first?.headers).toMatchObject({
      'content-type': 'application/json',
      'holdfast-delivery': '1',
    });
    const key = join(one.home, 'webhook.key');
    expect(statSync(key).mode & 0o777).toBe(0o600);
    const signature = String(first?.headers['holdfast-signature']);
    const [, at = '', total] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signature) ?? [];
    expect(Math.abs(Number(at) - Date.now() / 1000)).toBeLessThan(60);
    const secret = readFileSync(key, 'utf8').trim();
    expect(createHmac('sha256', secret).update(`${at}.${first?.body}`).digest('hex')).toBe(total);
    // Without a chat there is none in the notice, and nothing is sent twice.
    const plain = await one.client.start('true');
    await receiver.count(2);
    expect(receiver.ids()).toEqual([id, plain]);
    expect(receiver.deliveries[1]?.notice).not.toHaveProperty('chat');
  });

  it('[SV8] is called again, after growing pauses, until it answers 2xx; one refusal holds up no other', async () => {
    const receiver = new Receiver();
    const clock = new FakeClock();
    const url = await receiver.open();
    const one = await served({ webhook: { url }, clock });
    pastStart(clock);
    const answers = [500, 0, 302];
    receiver.answer = ({ command }) => (command === 'true' ? (answers.shift() ?? 200) : 200);
    const stubborn = await one.client.start('true');
    await receiver.count(1);
    const other = await one.client.start('exit 1');
    await one.client.wait(other);
    for (const [pauseMs, total] of [
      [1000, 2],
      [2000, 4],
      [4000, 5],
    ] as const) {
      await turnsUntil(() => clock.pending > 0);
      clock.advance(pauseMs - 1);
      expect(clock.pending).toBe(1);
      clock.advance(1);
      await receiver.count(total);
    }
    expect(receiver.ids()).toEqual([stubborn, stubborn, stubborn, other, stubborn]);
    expect(one.reports.join('\n')).toMatch(/webhook failed.*500/);
    expect(one.reports).toHaveLength(1);
  });

  it('[SV8] exits while nobody listened, or while the server was down, are sent by the next server', async () => {
    const receiver = new Receiver();
    const url = await receiver.open();
    const home = temporaryFolder();
    onCleanup(() => stopKeeper(home));
    const first = await serve({ home, webhook: { url } });
    const reported = await first.client.start('true');
    await receiver.count(1);
    receiver.answer = () => 503;
    const refused = await first.client.start('true');
    await receiver.count(2);
    const late = await first.client.start('exec sleep 0.3');
    await first.server.close();
    receiver.answer = () => 200;
    const second = await serve({ home, webhook: { url } });
    onCleanup(() => second.server.close());
    await turnsUntil(() => receiver.ids().includes(late));
    const after = receiver.ids().slice(2);
    expect(after).toContain(refused);
    expect(after).not.toContain(reported);
  });

  it('[SV62] however many are refused for good, those behind them are sent', async () => {
    const receiver = new Receiver();
    const clock = new FakeClock();
    const one = await served({ webhook: { url: await receiver.open() }, clock });
    pastStart(clock);
    receiver.answer = ({ command }) => (command === 'true' ? 400 : 204);
    const unwanted = Array.from({ length: 101 }, () => one.client.run('true'));
    await Promise.all(unwanted);
    const wanted = await one.client.start('exit 1');
    await one.client.wait(wanted);
    await turnsUntil(() => clock.pending > 0);
    clock.advance(60_000);
    await turnsUntil(() => receiver.ids().includes(wanted));
    expect(new Set(receiver.ids()).size).toBe(102);
  });

  it('[SV9] goes over TLS or stays on this machine, unless plain HTTP is allowed, and carries no password', async () => {
    const home = temporaryFolder();
    onCleanup(() => stopKeeper(home));
    for (const [url, problem] of [
      ['hook.example', /not a URL/],
      ['ftp://127.0.0.1/', /begin with https/],
      ['http://hook.example/', /another machine/],
      ['http://127.0.0.1.evil.example/', /another machine/],
      ['https://user:word@hook.example/', /password/],
    ] as const)
      expect((await failure(serve({ home, webhook: { url } }))).message).toMatch(problem);
    for (const webhook of [
      { url: 'http://hook.invalid/', insecure: true },
      { url: 'https://hook.invalid/' },
      { url: 'http://[::1]:9/' },
      { url: 'http://localhost:9/' },
    ]) {
      const one = await serve({ home, webhook });
      await one.server.close();
    }
  });
});
