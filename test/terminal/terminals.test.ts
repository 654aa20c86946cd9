// The native dialect's terminals, over a real server and keeper. Every JSON answer is held against the description.
import { WebSocket } from 'ws';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ProcessInfo } from '../../src/protocol/process.ts';
import { terminalOperations } from '../../src/server/native/terminals/operations.ts';
import { serve, type Served } from '../support/coder-client.ts';
import { gate } from '../support/hosts.ts';
import { answered, NativeClient } from '../support/native-client.ts';

let served: Served;
let client: NativeClient;

beforeAll(async () => {
  served = await serve();
  client = NativeClient.of(served);
});
afterAll(() => served.stop());

interface Shown {
  readonly text: string;
  readonly capturedAtSeq: number;
  readonly screenHash: string;
}

async function open(body: object = {}): Promise<string> {
  const { json } = await client.post('/v1/terminals', {
    argv: ['/bin/bash'],
    env: { PS1: '$ ', HOME: '/' },
    ...body,
  });
  return (json as { process: ProcessInfo }).process.id;
}

const run = async (id: string, command: string, more: object = {}): Promise<never> =>
  (await client.post(`/v1/terminals/${id}/run`, { command, timeoutMs: 60_000, ...more })).json;
const screen = async (id: string): Promise<Shown> =>
  (await client.get(`/v1/terminals/${id}/snapshot?format=text`)).json;

describe('native terminals', () => {
  it('[TM24] are opened, listed, driven and closed', async () => {
    const id = await open({ name: 'mine', size: { cols: 60, rows: 10 } });
    await client.start({ command: 'sleep 300' });
    expect((await client.get('/v1/terminals')).json).toMatchObject({
      total: 1,
      processes: [{ id }],
    });
    expect((await client.get(`/v1/terminals/${id}`)).json).toMatchObject({
      terminal: { term: 'xterm-256color', marks: 'bash' },
    });
    expect(await run(id, 'echo hi; false')).toMatchObject({
      completed: true,
      completion: 'marks',
      exitCode: 1,
      output: 'hi\n',
    });
    await run(id, 'echo again', { run: 'r1' });
    expect((await client.get(`/v1/terminals/${id}/runs/r1?timeoutMs=1000`)).json).toMatchObject({
      run: 'r1',
      output: 'again\n',
    });
    // A run ends before the shell draws its prompt, and with it asks for brackets around pastes.
    const prompt = { regex: 'again\\n[^\\n]*[#$]', timeoutMs: 60_000 };
    const drawn = await client.post(`/v1/terminals/${id}/wait`, prompt);
    expect(drawn.json).toMatchObject({ matched: true });
    const input = (body: object) => client.post(`/v1/terminals/${id}/input`, body);
    expect((await input({ text: 'echo ty' })).json).toMatchObject({ bytes: 7 });
    expect((await input({ paste: 'ped' })).json).toMatchObject({ bytes: 15 });
    expect((await input({ keys: ['Enter'] })).json).toMatchObject({ bytes: 1 });
    const waited = await client.post(`/v1/terminals/${id}/wait`, {
      regex: '^typed$|\ntyped\n',
      timeoutMs: 60_000,
    });
    expect(waited.json).toMatchObject({ matched: true, timedOut: false });
    expect((await client.post(`/v1/terminals/${id}/mark`, { label: 'here' })).status).toBe(200);
    expect(
      (await client.post(`/v1/terminals/${id}/resize`, { size: { cols: 50, rows: 9 } })).status,
    ).toBe(200);
    expect(await run(id, 'stty size')).toMatchObject({ output: '9 50\n' });
    const shot = await client.get(`/v1/terminals/${id}/snapshot?cells=true&scrollback=true`);
    expect(shot.json).toMatchObject({
      format: 'structured',
      cols: 50,
      rows: 9,
      isAltScreen: false,
    });
    const picture = await client.get(`/v1/terminals/${id}/screenshot`);
    expect(picture.headers['content-type']).toBe('image/png');
    expect(picture.bytes.subarray(1, 4).toString()).toBe('PNG');
    const svg = await client.get(`/v1/terminals/${id}/screenshot?format=svg&theme=light`);
    expect(svg.bytes.toString()).toContain('<svg');
    expect((await client.post(`/v1/terminals/${id}/signal`, { signal: 'INT' })).json).toMatchObject(
      {
        survivors: [],
      },
    );
    expect((await client.delete(`/v1/terminals/${id}`)).json).toEqual({});
    expect((await client.get(`/v1/terminals/${id}`)).status).toBe(404);
  });

  it('[TM25] a batch is checked whole, does its steps, and stops at the first that fails', async () => {
    const id = await open();
    const batch = (body: object) => client.post(`/v1/terminals/${id}/batch`, body);
    const bad = await batch({ steps: [{ type: 'not typed' }, { sendKeys: ['NoSuchKey'] }] });
    expect(bad.status).toBe(400);
    expect(bad.json).toMatchObject({ error: { details: { stepIndex: 1 } } });
    expect((await screen(id)).text).not.toContain('not typed');
    const done = await batch({
      steps: [
        { run: 'echo one' },
        { type: 'echo t""wo' },
        { sendKeys: ['Enter'] },
        { wait: { text: 'two', timeout: 60_000 } },
        { wait: { text: 'never', timeout: 50 } },
        { run: 'echo three' },
      ],
    });
    expect(done.json).toMatchObject({
      completedCount: 4,
      failedIndices: [4],
      steps: [
        { status: 'completed', exitCode: 0, runOutcome: 'completed' },
        { status: 'completed' },
        { status: 'completed' },
        { status: 'completed', matched: true },
        { status: 'failed', matched: false, timedOut: true },
        { status: 'not-run' },
      ],
    });
    const on = await batch({
      steps: [{ wait: { text: 'never', timeout: 10 } }, { run: 'true' }],
      keepGoing: true,
    });
    expect(on.json).toMatchObject({ completedCount: 1, failedIndices: [0] });
  });

  it('[TM26] a wait whose time is over shows the screen, the nearest miss, and ends nothing', async () => {
    const id = await open();
    await run(id, 'echo almost there');
    const waited = await client.post(`/v1/terminals/${id}/wait`, {
      text: 'almost done',
      timeoutMs: 50,
    });
    expect(waited.json).toMatchObject({
      matched: false,
      timedOut: true,
      snapshot: { text: expect.stringContaining('almost there') as string },
      nearest: { found: expect.stringContaining('almost ') as string },
    });
    const stream = { text: 'almost there', where: 'stream', timeoutMs: 5000 };
    await run(id, 'seq 1 200');
    expect((await client.post(`/v1/terminals/${id}/wait`, stream)).json).toMatchObject({
      matched: true,
    });
  });

  it('[TM27] what a program asks its terminal is answered although nobody looks', async () => {
    const id = await open();
    const ask = `stty raw -echo; printf '\\033[6n'; dd bs=1 count=6 2>/dev/null | od -An -c; stty sane`;
    expect(await run(id, ask)).toMatchObject({ output: expect.stringContaining('R') as string });
    const da = `stty raw -echo; printf '\\033[c'; dd bs=1 count=3 2>/dev/null | od -An -c; stty sane`;
    expect(await run(id, da)).toMatchObject({ output: expect.stringContaining('?') as string });
  });

  it('[TM28] an ended terminal still shows its last screen, at any event', async () => {
    const id = await open();
    const first = (await run(id, 'echo first')) as { endSeq: number };
    await run(id, 'echo second');
    await run(id, 'exit');
    await client.post(`/v1/processes/${id}/wait`, { for: [{ kind: 'closed' }] });
    expect((await screen(id)).text).toContain('second');
    const early = await client.get(`/v1/terminals/${id}/snapshot?format=text&at=${first.endSeq}`);
    expect((early.json as Shown).text).toContain('first');
    expect((early.json as Shown).text).not.toContain('second');
    const waited = await client.post(`/v1/terminals/${id}/wait`, { text: 'second' });
    expect(waited.json).toMatchObject({ matched: true });
    const none = await client.post(`/v1/terminals/${id}/wait`, { text: 'third' });
    expect(none.json).toMatchObject({ matched: false, timedOut: false, ended: true });
  });

  it('[TM29] one owner cannot see or touch the terminal of another', async () => {
    const id = await open();
    const other = client.with({ 'holdfast-owner': 'another' });
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['POST', '/run', { command: 'x' }],
      ['POST', '/input', { text: 'x' }],
      ['POST', '/wait', { text: 'x' }],
      ['GET', '/snapshot', undefined],
      ['GET', '/screenshot', undefined],
      ['DELETE', '', undefined],
    ] as const) {
      const reply = await other.call(method, `/v1/terminals/${id}${path}`, {
        ...(body && { body }),
      });
      expect(reply.status).toBe(404);
    }
    expect((await other.get('/v1/terminals')).json).toMatchObject({ total: 0 });
  });

  it('[TM40] over a WebSocket: the screen, the output behind it, keys; cut off, it goes on without a hole', async () => {
    const id = await open();
    await run(id, 'echo before');
    const first = new Attachment(served, id, '');
    expect(await first.hello()).toMatchObject({
      screen: expect.stringContaining('before') as string,
    });
    first.socket.send(Buffer.from('for i in $(seq 1 2000); do echo line$i; done; echo al""most\r'));
    await first.until((text) => text.includes('almost'), 2000);
    // What is still on its way may arrive later: both are of one moment.
    const { output: before, last } = first;
    first.socket.terminate();
    const second = new Attachment(served, id, `?after=${last}`);
    await second.hello();
    second.socket.send(JSON.stringify({ type: 'resize', cols: 70, rows: 20 }));
    second.socket.send(
      JSON.stringify({ type: 'keys', keys: ['C-u', 'e', 'x', 'i', 't', 'Enter'] }),
    );
    const end = await second.ended;
    expect(end).toMatchObject({ type: 'end', state: 'closed' });
    const whole = await client.get(`/v1/processes/${id}/bytes`);
    const seen = Buffer.concat([before, second.output]).toString();
    expect(whole.bytes.toString().endsWith(seen)).toBe(true);
    expect(seen).toContain('line2000');
    expect((await client.get(`/v1/terminals/${id}`)).json).toMatchObject({
      size: { cols: 70, rows: 20 },
    });
  });

  it('[X41] what is typed faster than a program reads waits in the client, and arrives whole when it reads', async () => {
    const id = await open();
    const held = gate();
    const typing = new Attachment(served, id, '');
    await typing.hello();
    const MiB = 1024 * 1024;
    const messages = 16;
    const reading = `head -c $((${messages} * ${MiB})) | wc -c`;
    const script = `stty raw -echo; echo he""ld; ${held.wait}; ${reading}; stty sane`;
    typing.socket.send(Buffer.from(`${script}\r`));
    await typing.until((text) => text.includes('held'), Infinity);
    let sent = 0;
    for (let each = 0; each < messages; each += 1)
      typing.socket.send(Buffer.alloc(MiB, 'x'), () => (sent += 1));
    // The server has had its turns to read all of it.
    for (let each = 0; each < 50; each += 1) await client.get(`/v1/terminals/${id}`);
    expect(sent).toBeLessThan(messages);
    held.open();
    await typing.until((text) => text.includes(String(messages * MiB)), Infinity);
    expect(sent).toBe(messages);
    typing.socket.terminate();
  });

  it('[TM40] a read-only one types nothing, and a foreign or plain request is refused', async () => {
    const id = await open();
    const looking = new Attachment(served, id, '?readOnly=true');
    await looking.hello();
    looking.socket.send(Buffer.from('echo no\r'));
    expect(await looking.problem).toMatchObject({ error: { code: 'forbidden' } });
    looking.socket.terminate();
    const foreign = new Attachment(served, 'nobody', '');
    expect(await foreign.problem).toMatchObject({ error: { code: 'not_found' } });
    expect((await client.get(`/v1/terminals/${id}/attach`)).status).toBe(400);
  });

  it('[TM24] every operation that answers JSON was answered here as its description says', () => {
    const rows = Object.entries(terminalOperations).filter(([, row]) => 'answer' in row);
    expect(rows.map(([name]) => name).filter((name) => !answered.has(name))).toEqual([]);
    expect(served.reports).toEqual([]);
  });
});

/** One WebSocket on a terminal, and what came through it. */
class Attachment {
  readonly socket: WebSocket;
  output = Buffer.alloc(0);
  /** The last event that was taken in whole. */
  last = 0;
  readonly ended: Promise<unknown>;
  readonly problem: Promise<unknown>;
  private readonly greeted: Promise<{ seq: number }>;
  private wake = (): void => undefined;

  constructor({ port, token }: Served, id: string, query: string) {
    this.socket = new WebSocket(`ws://127.0.0.1:${port}/v1/terminals/${id}/attach${query}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const said = (type: string): Promise<never> =>
      new Promise((resolve) => {
        this.socket.on('message', (data: Buffer, binary) => {
          if (binary) return;
          const message = JSON.parse(data.toString()) as { type: string };
          if (message.type === type) resolve(message as never);
        });
      });
    this.greeted = said('hello');
    this.ended = said('end');
    this.problem = said('problem');
    this.socket.on('message', (data: Buffer, binary) => this.received(data, binary));
  }

  async hello(): Promise<unknown> {
    const hello = await this.greeted;
    this.last = Math.max(this.last, hello.seq);
    return hello;
  }

  /** Until it has printed what is wanted, or this many bytes. */
  async until(enough: (text: string) => boolean, bytes: number): Promise<void> {
    while (this.output.length < bytes && !enough(this.output.toString()))
      await new Promise<void>((resolve) => (this.wake = resolve));
  }

  private received(data: Buffer, binary: boolean): void {
    if (binary) {
      this.output = Buffer.concat([this.output, data.subarray(8)]);
      this.last = data.readUIntLE(0, 6);
    } else {
      const { event } = JSON.parse(data.toString()) as { event?: { seq: number } };
      if (event) this.last = event.seq;
    }
    this.wake();
  }
}
