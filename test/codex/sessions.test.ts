// The codex door: sessions that outlive their connection and their server. The numbers in the comments are those of the
// behaviours that the peer's own tests check.

import { connect } from 'node:net';
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { serve, type Served } from '../support/coder-client.ts';
import { CodexClient, text } from '../support/codex-client.ts';
import { ExecServer } from '../support/exec-server.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { onCleanup, temporaryFolder } from '../support/hosts.ts';
import type { ServerOptions } from '../../src/server/server.ts';

async function served(options: Partial<ServerOptions> = {}): Promise<Served & { codex: string }> {
  const made = await serve(options);
  onCleanup(() => made.stop());
  return Object.assign(made, {
    codex: `ws://127.0.0.1:${made.port}/codex?token=${made.token}`,
  });
}

/** Prints a line for each line it is given. */
const ECHO = 'while read line; do echo "echo:$line"; done';

describe('resuming', () => {
  it('[CX11] the session goes on where it was: same id, process alive, nothing lost, numbers dense', async () => {
    // 16, 34, 40, 41, 43
    const { codex } = await served();
    const first = await CodexClient.ready(codex);
    await first.shell('p', ECHO, { pipeStdin: true });
    await first.write('p', 'one\n', 'w1');
    await first.untilOutput('p', 'echo:one\n');
    await first.kill();
    const second = await CodexClient.ready(codex, { resume: first.session });
    expect(second.session).toBe(first.session);
    // The same write again, as a client does that never saw its answer.
    await second.write('p', 'one\n', 'w1');
    await second.write('p', 'two\n', 'w2');
    await second.untilOutput('p', 'echo:two\n');
    const missed = await second.read('p', { afterSeq: 1, maxBytes: null, waitMs: 0 });
    expect(missed).toMatchObject({ nextSeq: 3, exited: false, closed: false });
    expect(text(missed.chunks)).toBe('echo:two\n');
    expect(second.of('p').map(({ params }) => params.seq)).toEqual([2]);
    expect(await second.call('process/terminate', { processId: 'p' })).toEqual({ running: true });
    await second.untilClosed('p');
    expect(second.of('p').map(({ params }) => params.seq)).toEqual([2, 3, 4]);
  });

  it('[CX11] nothing is replayed by itself, and what ended meanwhile can be read', async () => {
    // 20
    const { codex, server } = await served();
    const first = await CodexClient.ready(codex);
    await first.shell('p', 'read line; echo "$line"; exit 3', { pipeStdin: true });
    void first.write('p', 'last\n', 'w');
    await first.kill();
    await server.host.wait('*', { waits: [{ id: 'p', for: [{ kind: 'closed' }] }] });
    const second = await CodexClient.ready(codex, { resume: first.session });
    expect(await second.read('p', { afterSeq: 0, waitMs: 0 })).toMatchObject({
      nextSeq: 4,
      exited: true,
      exitCode: 3,
      closed: true,
    });
    expect(second.notifications).toEqual([]);
    expect(await second.call('process/terminate', { processId: 'p' })).toEqual({ running: false });
  });

  it('[CX11] processes belong to their session', async () => {
    const { codex } = await served();
    const [a, b] = [await CodexClient.ready(codex), await CodexClient.ready(codex)];
    await a.start('p', ['sleep', '600']);
    expect(await b.refusal('process/read', { processId: 'p' })).toMatchObject({
      message: 'unknown process id p',
    });
    await b.start('p', ['true']);
    await b.untilClosed('p');
    expect(a.notifications).toEqual([]);
  });

  it('[CX12] a holder that is alive keeps its session; one that answers no ping loses it, and gets an error', async () => {
    // 17, 18, 19
    const clock = new FakeClock();
    const { codex } = await served({ clock });
    const holder = await CodexClient.ready(codex);
    await holder.start('p', ['sleep', '600']);
    const attached = {
      code: -32010,
      message: `session ${holder.session} is already attached to another connection`,
    };
    const other = await CodexClient.connect(codex);
    const resume = { clientName: 'x', resumeSessionId: holder.session };
    // Heard a moment ago, then silent for a while but answering pings.
    expect(await other.refusal('initialize', resume)).toEqual(attached);
    clock.advance(5000);
    expect(await other.refusal('initialize', resume)).toEqual(attached);
    clock.advance(5000);
    const poll = holder.refusal('process/read', { processId: 'p', waitMs: 600_000 });
    await holder.call('process/list');
    // From here on it hears nothing and says nothing, as behind a network that is gone.
    holder.socket.pause();
    clock.advance(5000);
    const resumed = other.call('initialize', resume);
    await until(() => clock.pendingWithin(2000));
    clock.advance(2000);
    expect(await resumed).toMatchObject({ sessionId: holder.session });
    other.notify('initialized');
    expect(await other.call('process/list')).toMatchObject({ processes: [{ processId: 'p' }] });
    holder.socket.resume();
    expect(await poll).toEqual({
      code: -32600,
      message: 'session has been resumed by another connection',
    });
    void holder.ask('process/list');
    await holder.dropped();
  });

  it('[CX12] a connection that is silent for three pings is over', async () => {
    const clock = new FakeClock();
    const { codex } = await served({ clock });
    const silent = await CodexClient.ready(codex, {});
    silent.socket.pause();
    for (let ping = 0; ping < 4; ping += 1) clock.advance(30_000);
    silent.socket.resume();
    await silent.dropped();
    const again = await CodexClient.ready(codex, { resume: silent.session });
    expect(again.session).toBe(silent.session);
  });
});

describe('the time a session has', () => {
  it('[CX14] when it is over, its processes are ended, except those that were to stay', async () => {
    const { codex, server } = await served({ detachMs: 200 });
    const client = await CodexClient.ready(codex);
    await client.shell('goes', 'setsid sleep 600 & sleep 600');
    await client.start('stays', ['sleep', '600'], { onDetach: 'keep' });
    await client.kill();
    const { met } = await server.host.wait('*', {
      waits: [{ id: 'goes', for: [{ kind: 'settled' }] }],
    });
    expect(met[0]?.process.outcome).toMatchObject({ kind: 'signal', by: 'lease ran out' });
    expect(await server.host.get('*', { id: 'stays' })).toMatchObject({ state: 'running' });
    const late = await CodexClient.connect(codex);
    const refusal = await late.refusal('initialize', {
      clientName: 'x',
      resumeSessionId: client.session,
    });
    expect(refusal).toEqual({ code: -32600, message: `unknown session id ${client.session}` });
  });

  it('[CX14] an id can be used again 30 seconds after its process closed, and until then it can be read', async () => {
    // 20, 27, 28
    const clock = new FakeClock();
    const { codex, server } = await served({ clock });
    const client = await CodexClient.ready(codex);
    await client.start('p', ['echo', 'first']);
    await client.untilClosed('p');
    // Its exit was reported by the keeper, whose clock is the machine's: from there on ours counts.
    const { closedAtMs = 0 } = await server.host.get('*', { id: 'p' });
    clock.wallOffsetMs = closedAtMs - clock.nowUs() / 1000;
    clock.advance(29_000);
    const spec = { processId: 'p', argv: ['echo', 'second'], cwd: 'file:///', env: {}, tty: false };
    expect((await client.refusal('process/start', spec)).message).toBe('process p already exists');
    expect(text((await client.read('p')).chunks)).toBe('first\n');
    clock.advance(2000);
    await client.call('process/start', spec);
    await client.until(() => client.output('p').includes('second'));
    await client.until(() => client.of('p').length === 6);
    expect(client.of('p').map(({ params }) => params.seq)).toEqual([1, 2, 3, 1, 2, 3]);
  });
});

describe('a server that is killed', () => {
  it('[CX13] the next one resumes the session, and one read returns every missed byte, dense', async () => {
    const server = new ExecServer(temporaryFolder());
    await server.start();
    const first = await CodexClient.ready(server.url);
    const script = 'read a; seq 1 200000; read b; echo "b=$b"; sleep 600';
    await first.shell('p', script, { pipeStdin: true });
    // Asked for and not waited for: whether it arrived is not known to the client.
    await first.write('p', 'go\n', 'w1');
    await first.untilOutput('p', '100\n');
    await server.kill();
    // What is still on its way may arrive later: both are of one moment.
    const seen = first.output('p');
    const last = Math.max(...first.of('p').map(({ params }) => params.seq));
    await server.start();
    const second = await CodexClient.ready(server.url, { resume: first.session });
    await second.write('p', 'go\n', 'w1');
    await second.write('p', 'done\n', 'w2');
    let rest = await second.read('p', { afterSeq: last, maxBytes: null, waitMs: 60_000 });
    while (!text(rest.chunks).includes('b='))
      rest = await second.read('p', { afterSeq: last, maxBytes: null, waitMs: 60_000 });
    expect(rest.chunks.map(({ seq }) => seq)).toEqual(
      Array.from({ length: rest.nextSeq - 1 - last }, (_, index) => last + 1 + index),
    );
    const whole = seen + text(rest.chunks);
    const expected = Array.from({ length: 200_000 }, (_, index) => `${index + 1}\n`).join('');
    expect(whole === `${expected}b=done\n`).toBe(true);
    expect(await second.call('process/terminate', { processId: 'p' })).toEqual({ running: true });
    await second.untilClosed('p');
    expect(second.of('p').at(-1)?.params.seq).toBe(rest.nextSeq + 1);
  });
});

describe('a keeper that is killed', () => {
  it('[CX13] its processes are reported as lost, and the numbers continue', async () => {
    const { codex, server } = await served();
    const client = await CodexClient.ready(codex);
    await client.shell('p', ECHO, { pipeStdin: true });
    for (const word of ['one', 'two']) {
      await client.write('p', `${word}\n`, word);
      await client.untilOutput('p', `echo:${word}\n`);
    }
    process.kill(server.keeperPid, 'SIGKILL');
    await client.untilClosed('p');
    expect(
      client.of('p').map(({ method, params }) => [method, params.seq, params.exitCode]),
    ).toEqual([
      ['process/output', 1, undefined],
      ['process/output', 2, undefined],
      ['process/exited', 3, -1],
      ['process/closed', 4, undefined],
    ]);
    expect(await client.read('p', { afterSeq: 1000 })).toMatchObject({
      exited: true,
      exitCode: -1,
      closed: true,
      failure: expect.stringMatching(/its keeper \(pid \d+\) died/) as string,
    });
  });
});

describe('much output', () => {
  it('[CX15] a late reader gets head and tail in one dense answer, which says exactly what is missing', async () => {
    // 29
    const { codex, server } = await served();
    const client = await CodexClient.ready(codex);
    const count = 6_000_000;
    await client.shell('big', `read go; seq -f %015.0f 1 ${count}`, { pipeStdin: true });
    await client.write('big', 'go\n', 'w');
    await client.kill();
    await server.host.wait('*', { waits: [{ id: 'big', for: [{ kind: 'closed' }] }] });
    const late = await CodexClient.ready(codex, { resume: client.session });
    const answer = await late.read('big', { afterSeq: 0, maxBytes: null });
    expect(answer).toMatchObject({ exited: true, exitCode: 0, closed: true });
    const numbers = answer.chunks.map(({ seq }) => seq);
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
    expect(numbers.length).toBe(answer.nextSeq - 3);
    const omitted = answer.omitted ?? [];
    const markers = omitted.map(
      ({ bytes }) => `\n[holdfast: ${bytes} bytes of output are not here]\n`,
    );
    const there = text(answer.chunks);
    const missing = omitted.reduce((total, { bytes }) => total + bytes, 0);
    expect(there.length - markers.join('').length + missing).toBe(count * 16);
    for (const marker of markers) expect(there).toContain(marker);
    expect(there.startsWith('000000000000001\n000000000000002\n')).toBe(true);
    expect(there.endsWith(`${String(count).padStart(15, '0')}\n`)).toBe(true);
    // What is only too much for one answer can be had by pages.
    const kept = omitted.find(({ retained }) => retained);
    const page = await late.read('big', { afterSeq: (kept?.fromSeq ?? 0) - 1, maxBytes: 100_000 });
    expect(page.chunks[0]?.seq).toBe(kept?.fromSeq);
    expect(page.omitted).toBeUndefined();
    // With pages, missing output is reported too.
    const gone = omitted.find(({ retained }) => !retained);
    const behind = await late.read('big', {
      afterSeq: (gone?.fromSeq ?? 0) - 1,
      maxBytes: 100_000,
    });
    expect(behind.omitted).toEqual([gone]);
    expect(behind.chunks[0]?.seq).toBe((gone?.toSeq ?? 0) + 1);
  });

  it('[CX15] an answer that is too large for one frame of the real client comes in several', async () => {
    const { codex, port, token } = await served();
    const client = await CodexClient.ready(codex);
    await client.shell('big', 'head -c 20000000 /dev/zero');
    await client.untilClosed('big');
    await client.kill();
    const frames = await rawFrames(port, token, [
      {
        id: 1,
        method: 'initialize',
        params: { clientName: 'raw', resumeSessionId: client.session },
      },
      { method: 'initialized' },
      { id: 2, method: 'process/read', params: { processId: 'big' } },
    ]);
    const answer = frames.slice(1);
    expect(answer.length).toBeGreaterThan(2);
    expect(Math.max(...answer.map(({ bytes }) => bytes))).toBeLessThanOrEqual(8 * 1024 * 1024);
    expect(answer.map(({ fin }) => fin)).toEqual(
      answer.map((_, index) => index === answer.length - 1),
    );
    expect(answer.map(({ opcode }) => opcode)).toEqual(
      answer.map((_, index) => (index === 0 ? 1 : 0)),
    );
    expect(answer.reduce((total, { bytes }) => total + bytes, 0)).toBeGreaterThan(26_666_000);
  });

  it('[CX15] a request of 60 MB is taken', async () => {
    const { codex } = await served();
    const client = await CodexClient.ready(codex);
    const refusal = await client.refusal('nope/nope', { big: 'x'.repeat(60_000_000) });
    expect(refusal.code).toBe(-32601);
  });
});

/** Resolves in the turn in which the condition holds: it depends on nothing but what happens inside this program. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition())
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
}

interface RawFrame {
  readonly fin: boolean;
  readonly opcode: number;
  readonly bytes: number;
}

/** Sends messages and answers the frames that come back, up to the end of the last message's answer. */
function rawFrames(port: number, token: string, messages: readonly unknown[]): Promise<RawFrame[]> {
  const socket = connect(port, '127.0.0.1');
  onCleanup(() => void socket.destroy());
  socket.write(
    [
      `GET /codex?token=${token} HTTP/1.1`,
      `Host: 127.0.0.1:${port}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
      '\r\n',
    ].join('\r\n'),
  );
  for (const message of messages) {
    const payload = Buffer.from(JSON.stringify(message));
    const head = Buffer.from([0x81, 0xfe, payload.length >> 8, payload.length & 255, 0, 0, 0, 0]);
    socket.write(Buffer.concat([head, payload]));
  }
  const answers = messages.filter((message) => 'id' in (message as object)).length;
  const frames: RawFrame[] = [];
  let received: Buffer[] = [];
  let size = 0;
  /** Bytes until the next frame's head is there. */
  let wanted = 0;
  let upgraded = false;
  return new Promise((resolve) => {
    socket.on('data', (chunk) => {
      received.push(chunk);
      size += chunk.length;
      if (size < wanted) return;
      let bytes = Buffer.concat(received);
      if (!upgraded) {
        const end = bytes.indexOf('\r\n\r\n');
        if (end < 0) return;
        upgraded = true;
        bytes = bytes.subarray(end + 4);
      }
      for (;;) {
        const head = headOf(bytes);
        if (!head || bytes.length < head.headBytes + head.bytes) {
          wanted = head ? head.headBytes + head.bytes : bytes.length + 1;
          break;
        }
        frames.push(head);
        bytes = bytes.subarray(head.headBytes + head.bytes);
      }
      received = [bytes];
      size = bytes.length;
      if (frames.filter(({ fin }) => fin).length === answers) resolve(frames);
    });
  });
}

function headOf(bytes: Buffer): (RawFrame & { headBytes: number }) | undefined {
  if (bytes.length < 10) return undefined;
  const [first = 0, second = 0] = bytes;
  const fin = (first & 0x80) !== 0;
  const opcode = first & 0x0f;
  const length = second & 0x7f;
  if (length === 126) return { fin, opcode, bytes: bytes.readUInt16BE(2), headBytes: 4 };
  if (length === 127)
    return { fin, opcode, bytes: Number(bytes.readBigUInt64BE(2)), headBytes: 10 };
  return { fin, opcode, bytes: length, headBytes: 2 };
}
