// The dashboard's WebSocket without a browser: who may speak on it, and that what is followed continues exactly.
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serve, type Served } from '../support/coder-client.ts';
import { describeHosts, onCleanup, OWNER, startProcess, waitFor } from '../support/hosts.ts';
import { NativeClient } from '../support/native-client.ts';
import type {
  TerminalRunInfo,
  Timeline,
  TimePoint,
} from '../../src/protocol/dashboard/timeline.ts';
import type { ThumbnailMessage } from '../../src/protocol/dashboard/thumbnail.ts';
import type { Results } from '../../src/protocol/host-api.ts';

interface Message {
  readonly type: string;
  readonly [field: string]: unknown;
}

interface Piece {
  readonly kind: number;
  readonly channel: number;
  readonly position: number;
  readonly bytes: Buffer;
}

/** A page's end of the connection. */
class Watcher {
  readonly socket: WebSocket;
  readonly messages: Message[] = [];
  readonly pieces: Piece[] = [];
  readonly closed: Promise<number>;
  private wake: () => void = () => undefined;

  constructor(port: number, headers: Record<string, string> = {}) {
    this.socket = new WebSocket(`ws://127.0.0.1:${port}/v1/watch`, { headers });
    this.closed = new Promise((resolve) => {
      this.socket.once('close', resolve);
    });
    onCleanup(() => this.socket.terminate());
    this.socket.on('message', (data: Buffer, binary) => {
      if (!binary) this.messages.push(JSON.parse(data.toString()) as Message);
      else
        this.pieces.push({
          kind: data[0] ?? 0,
          channel: data.readUIntBE(1, 3),
          position: data.readUIntBE(4, 6),
          bytes: data.subarray(10),
        });
      this.wake();
    });
  }

  static async open(port: number, token: string): Promise<Watcher> {
    const watcher = new Watcher(port);
    await once(watcher.socket, 'open');
    watcher.say({ type: 'hello', token });
    await watcher.until(() => watcher.find('welcome'));
    return watcher;
  }

  say(message: Record<string, unknown>): void {
    this.socket.send(JSON.stringify(message));
  }

  find(type: string): Message | undefined {
    return this.messages.find((message) => message.type === type);
  }

  get bytes(): number {
    return this.pieces.reduce((sum, { bytes }) => sum + bytes.length, 0);
  }

  async until<T>(check: () => T | undefined | false): Promise<T> {
    for (;;) {
      const found = check();
      if (found !== undefined && found !== false) return found;
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }
}

let served: Served;
let client: NativeClient;

beforeAll(async () => {
  served = await serve();
  client = NativeClient.of(served);
});

afterAll(() => served.stop());

describe("the dashboard's connection", () => {
  it('[DB8] says nothing before it was shown a token, and ends when that is none', async () => {
    const watcher = new Watcher(served.port);
    await once(watcher.socket, 'open');
    watcher.say({ type: 'list', channel: 1 });
    const problem = await watcher.until(() => watcher.find('problem'));
    expect(problem).toMatchObject({ error: { code: 'unauthorized' } });
    watcher.say({ type: 'hello', token: 'wrong' });
    expect(await watcher.closed).toBe(4401);
    expect(watcher.messages.map(({ type }) => type)).toEqual(['problem', 'bye']);
  });

  it('[DB8] is refused to pages of other origins', async () => {
    for (const origin of ['http://127.0.0.1:1', 'http://evil.example', 'null']) {
      const { socket } = new Watcher(served.port, { origin });
      const [error] = (await once(socket, 'error')) as [Error];
      expect(error.message).toContain('403');
    }
  });

  it('[DB8] is cut when the session is revoked', async () => {
    const { json } = await client.post('/v1/sessions/codes');
    const opened = await client.post('/v1/sessions', { code: (json as { code: string }).code });
    const { token, session } = opened.json as { token: string; session: { id: string } };
    const watcher = await Watcher.open(served.port, token);
    await client.delete(`/v1/sessions/${session.id}`);
    expect(await watcher.closed).toBe(4401);
  });

  it('[DB9] tells the list, then each change, and continues behind the last one after a cut', async () => {
    const first = await client.start({ command: 'read _', stdin: 'pipe', name: 'first' });
    const watcher = await Watcher.open(served.port, served.token);
    watcher.say({ type: 'list', channel: 1 });
    const rows = (watched: Watcher): Results['changes'][] =>
      watched.messages.filter(({ type }) => type === 'rows') as unknown as Results['changes'][];
    const [whole] = await watcher.until(() => rows(watcher).length > 0 && rows(watcher));
    expect(whole).toMatchObject({ reset: true, changed: [{ id: first.id, state: 'running' }] });
    const last = rows(watcher).at(-1);
    watcher.socket.terminate();
    await client.post(`/v1/processes/${first.id}/stdin`, { eof: true });
    await client.post(`/v1/processes/${first.id}/wait`, { for: 'closed' });
    const next = await Watcher.open(served.port, served.token);
    next.say({ type: 'list', channel: 1, epoch: last?.epoch, after: last?.version });
    await next.until(() =>
      rows(next).some(({ changed }) => changed.some(({ state }) => state === 'closed')),
    );
    expect(rows(next).some(({ reset }) => reset)).toBe(false);
    await client.delete(`/v1/processes/${first.id}`);
    await next.until(() =>
      rows(next).some(({ removed }) => removed.some(({ id }) => id === first.id)),
    );
  });

  it('[DB10] a log continues by offset: no byte twice, none missing, however often it is cut', async () => {
    const { id, owner } = await client.start({ command: 'seq 1 60000; read _', stdin: 'pipe' });
    const expected = Array.from({ length: 60_000 }, (_each, at) => `${at + 1}\n`).join('');
    const parts: Buffer[] = [];
    let offset = 0;
    while (offset < expected.length) {
      const watcher = await Watcher.open(served.port, served.token);
      watcher.say({ type: 'log', channel: 3, owner, id, offset });
      const piece = await watcher.until(() => watcher.pieces[0]);
      watcher.socket.terminate();
      expect(piece).toMatchObject({ kind: 1, channel: 3, position: offset });
      parts.push(piece.bytes);
      offset += piece.bytes.length;
    }
    expect(Buffer.concat(parts).toString()).toBe(expected);
    await client.delete(`/v1/processes/${id}?force=true`);
  });

  it('[DB10] a page that grants nothing is sent a bounded part, and holds up no other channel', async () => {
    const { id, owner } = await client.start({
      command: 'head -c 3000000 /dev/zero; read _',
      stdin: 'pipe',
    });
    await client.post(`/v1/processes/${id}/wait`, { for: [{ kind: 'silence', forMs: 1 }] });
    const watcher = await Watcher.open(served.port, served.token);
    watcher.say({ type: 'log', channel: 1, owner, id, offset: 0 });
    await watcher.until(() => watcher.bytes >= 512 * 1024);
    watcher.say({ type: 'list', channel: 2 });
    await watcher.until(() => watcher.find('rows'));
    expect(watcher.bytes).toBeLessThanOrEqual(512 * 1024 + 64 * 1024);
    for (let taken = 0; watcher.bytes < 3_000_000; taken = watcher.bytes) {
      watcher.say({ type: 'credit', channel: 1, bytes: 512 * 1024 });
      await watcher.until(() => watcher.bytes > taken);
    }
    expect(watcher.bytes).toBe(3_000_000);
    await client.delete(`/v1/processes/${id}?force=true`);
  });

  it('[DB18] a picture of a terminal has its lines, then only those that changed', async () => {
    const argv = ['/bin/sh', '-c', "stty -echo; printf '\\033[31mred\\033[0m one\\ntwo\\n'; cat"];
    const { json } = await client.post('/v1/terminals', { argv, size: { cols: 40, rows: 6 } });
    const { id, owner } = (json as { process: { id: string; owner: string } }).process;
    // The cursor is below them when their last line has ended, too.
    await client.post(`/v1/terminals/${id}/wait`, { text: 'two', cursorRow: 2 });
    const watcher = await Watcher.open(served.port, served.token);
    watcher.say({ type: 'thumbnail', channel: 1, owner, id, theme: 'dark', hz: 4 });
    const first = await watcher.until(() => watcher.find('thumbnail'));
    expect(first).toMatchObject({ cols: 40, rows: 6, cursor: [2, 0] });
    const lines = (message: Message): Map<number, string> =>
      new Map(
        (message as unknown as ThumbnailMessage).lines.map(([row, runs]) => [
          row,
          runs.map(([, , text]) => text).join(''),
        ]),
      );
    expect(lines(first).size).toBe(6);
    expect(lines(first).get(0)).toMatch(/^red one/);
    await client.post(`/v1/terminals/${id}/input`, { text: 'three\n' });
    const next = await watcher.until(() =>
      watcher.messages.find((each) => each.type === 'thumbnail' && each !== first),
    );
    expect([...lines(next)]).toEqual([[2, expect.stringMatching(/^three/)]]);
    await client.delete(`/v1/processes/${id}?force=true`);
  });

  it('[DB21] the course of a terminal has its times, runs and marks; any moment and byte has its event and its screen', async () => {
    const argv = ['/bin/bash', '--norc', '--noprofile'];
    const { json } = await client.post('/v1/terminals', { argv, env: { PS1: '$ ', HOME: '/' } });
    const { id, owner } = (json as { process: { id: string; owner: string } }).process;
    const run = async (command: string) =>
      (await client.post(`/v1/terminals/${id}/run`, { command })).json as { endSeq: number };
    const first = await run('echo "fir""st"');
    await client.post(`/v1/terminals/${id}/mark`, { label: 'between' });
    await run('clear; echo "sec""ond"; (exit 3)');
    const { runs } = (await client.get(`/v1/terminals/${id}/runs`)).json as {
      runs: TerminalRunInfo[];
    };
    expect(runs).toMatchObject([
      { command: 'echo "fir""st"', exitCode: 0, endSeq: first.endSeq },
      { exitCode: 3, outputFrom: expect.any(Number) as number },
    ]);
    const course = (await client.get(`/v1/processes/${id}/timeline`)).json as unknown as Timeline;
    expect(course.marks.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['run', 'runEnd', 'mark']),
    );
    expect(course.marks).toContainEqual(
      expect.objectContaining({ kind: 'mark', label: 'between' }),
    );
    expect(course.points[0]).toMatchObject({ seq: 1, offset: 0 });
    expect(course.points.at(-1)?.seq).toBe(course.seq);
    const at = async (query: string) =>
      (await client.get(`/v1/processes/${id}/at?${query}`)).json as unknown as TimePoint;
    const of = course.points.at(-1)?.offset ?? 0;
    expect((await at(`offset=${of}`)).seq).toBe(course.seq);
    expect(await at('offset=0')).toMatchObject({ offset: 0 });
    const begun = runs[1]?.outputFrom ?? 0;
    const found = await at(`offset=${begun}`);
    expect(found.offset).toBeLessThanOrEqual(begun);
    expect((await at(`ms=${found.atMs}`)).seq).toBeGreaterThanOrEqual(found.seq);
    expect((await client.get(`/v1/processes/${id}/at`)).status).toBe(400);
    const watcher = await Watcher.open(served.port, served.token);
    watcher.say({ type: 'paint', ask: 7, owner, id, at: first.endSeq });
    const painted = await watcher.until(() => watcher.find('done'));
    expect(painted).toMatchObject({ ask: 7, seq: first.endSeq });
    expect(painted['screen']).toContain('first');
    expect(painted['screen']).not.toContain('second');
    await client.delete(`/v1/processes/${id}?force=true`);
  });

  it('[DB8] a session of one owner follows nothing of another', async () => {
    const { id } = await client.start({ command: 'echo secret' });
    const { token } = served.tokens.create('chat:other');
    const watcher = await Watcher.open(served.port, token);
    watcher.say({ type: 'log', channel: 1, owner: 'api', id, offset: 0 });
    expect(await watcher.until(() => watcher.find('problem'))).toMatchObject({
      error: { code: 'forbidden' },
    });
    watcher.say({ type: 'list', channel: 2 });
    expect(await watcher.until(() => watcher.find('rows'))).toMatchObject({ changed: [] });
    expect(watcher.pieces).toEqual([]);
  });
});

describeHosts((make) => {
  it('[DB9] a client that keeps a copy is told starts, states, growth and removals, in pages', async () => {
    const host = await make();
    const ids = [];
    for (let count = 0; count < 3; count += 1)
      ids.push(await startProcess(host, { command: 'read _; echo more', stdin: 'pipe' }));
    const first = await host.changes(OWNER, { limit: 2 });
    expect(first).toMatchObject({ reset: true, more: true });
    const { epoch } = first;
    const second = await host.changes(OWNER, { epoch, after: first.version });
    expect(second).toMatchObject({ reset: false, more: false });
    expect([...first.changed, ...second.changed].map(({ id }) => id)).toEqual(ids);
    const waiting = host.changes(OWNER, { epoch, after: second.version, waitMs: 60_000 });
    const [id = ''] = ids;
    await host.write(OWNER, { id, data: Buffer.from('\n') });
    expect((await waiting).changed.map((row) => row.id)).toContain(id);
    await waitFor(host, id, { kind: 'closed' });
    const closed = await host.changes(OWNER, { epoch, after: second.version });
    expect(closed.changed).toMatchObject([{ id, state: 'closed', bytes: { total: 5 } }]);
    await host.remove(OWNER, { id });
    const removed = await host.changes(OWNER, { epoch, after: closed.version });
    expect(removed.removed).toEqual([{ owner: OWNER, id }]);
    expect(await host.changes('chat-2', {})).toMatchObject({ changed: [], removed: [] });
  });
});
