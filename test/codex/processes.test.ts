// The codex door: reading, writing, signals, what requests do to each other, and what we add. The numbers in the comments
// are those of the behaviours that the peer's own tests check.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isAlive, readEntry } from '../../src/system/proc-table.ts';
import type { Served } from '../support/coder-client.ts';
import { CodexClient, serveCodex, text, type Answer } from '../support/codex-client.ts';
import { turnsUntil } from '../support/recorder.ts';

let served: Served;
let url = '';

beforeAll(async () => {
  ({ served, url } = await serveCodex());
});
afterAll(() => served.stop());

describe('process/read', () => {
  it('[CX8] pages hold at least one chunk and then as many as fit; the rest comes with the next', async () => {
    const client = await CodexClient.ready(url);
    await client.shell('r', 'for i in 1 2 3 4 5; do echo line$i; read _; done', {
      pipeStdin: true,
    });
    for (const line of ['1', '2', '3', '4', '5']) {
      await client.untilOutput('r', `line${line}`);
      await client.write('r', '\n', line);
    }
    await client.untilClosed('r');
    const page = async (afterSeq: number, maxBytes: number | null) => {
      const { chunks, nextSeq, exited, exitCode, closed } = await client.read('r', {
        afterSeq,
        maxBytes,
        waitMs: 0,
      });
      return [chunks.map(({ seq }) => seq), nextSeq, exited, exitCode, closed];
    };
    expect(await page(0, 1)).toEqual([[1], 2, true, 0, true]);
    expect(await page(0, 6)).toEqual([[1], 2, true, 0, true]);
    expect(await page(0, 7)).toEqual([[1], 2, true, 0, true]);
    expect(await page(0, 12)).toEqual([[1, 2], 3, true, 0, true]);
    expect(await page(0, 0)).toEqual([[1], 2, true, 0, true]);
    expect(await page(3, 100)).toEqual([[4, 5], 6, true, 0, true]);
    expect(await page(5, 100)).toEqual([[], 8, true, 0, true]);
    expect(await page(0, null)).toEqual([[1, 2, 3, 4, 5], 8, true, 0, true]);
    expect(await page(1000, null)).toEqual([[], 8, true, 0, true]);
    expect(await client.refusal('process/read', { processId: 'nope' })).toEqual({
      code: -32600,
      message: 'unknown process id nope',
    });
    expect((await client.refusal('process/read', { processId: 'r', afterSeq: -1 })).code).toBe(
      -32602,
    );
    expect((await client.refusal('process/read', { processId: 'r', waitMs: 1.5 })).code).toBe(
      -32602,
    );
  });

  it('[CX8] a wait ends with output, exit or close, not with input, and with its time', async () => {
    const client = await CodexClient.ready(url);
    await client.start('c', ['sh', '-c', 'read a; read b; echo "$a$b"; read c'], {
      pipeStdin: true,
    });
    expect(await client.read('c')).toMatchObject({
      chunks: [],
      nextSeq: 1,
      exited: false,
      closed: false,
    });
    const waiting = client.read('c', { waitMs: 60_000 });
    const beyond = client.read('c', { afterSeq: 99, waitMs: 60_000 });
    const short = client.read('c', { afterSeq: 99, waitMs: 30 });
    await client.write('c', 'x\n', '1');
    expect(await short).toMatchObject({ chunks: [], nextSeq: 1 });
    await client.write('c', 'y\n', '2');
    const answer = await waiting;
    expect(text(answer.chunks)).toBe('xy\n');
    expect(answer).toMatchObject({ nextSeq: 2, exited: false });
    const exit = client.read('c', { afterSeq: 1, waitMs: 60_000 });
    await client.write('c', 'z\n', '3');
    expect(await exit).toMatchObject({ chunks: [], exited: true, exitCode: 0 });
    expect(await beyond).toMatchObject({ chunks: [], exited: true, closed: true, nextSeq: 4 });
  });

  it('[CX5] nothing waits behind a long poll, and what ends the process ends the poll', async () => {
    // 7, 8, 10, 12 (argued), 13, 44
    const client = await CodexClient.ready(url);
    await client.start('s', ['sleep', '600']);
    const polls = Array.from({ length: 40 }, () => client.read('s', { waitMs: 600_000 }));
    const order: string[] = [];
    await Promise.all(
      ['environment/info', 'environment/info', 'environment/status'].map(async (method) => {
        const answer = await client.call(method);
        order.push(method);
        if (method === 'environment/status') expect(answer).toEqual({ status: 'ready' });
      }),
    );
    expect(order).toEqual(['environment/info', 'environment/info', 'environment/status']);
    expect(await client.call('process/terminate', { processId: 's' })).toEqual({ running: true });
    for (const answer of await Promise.all(polls))
      expect(answer).toMatchObject({ chunks: [], exited: true });
    await client.untilClosed('s');
    expect(await client.call('process/terminate', { processId: 's' })).toEqual({ running: false });
    expect(await client.call('process/terminate', { processId: 'nope' })).toEqual({
      running: false,
    });
  });
});

describe('process/write', () => {
  it('[CX9] input arrives once per write id and in order, on pipes and on terminals', async () => {
    // 15, 30
    const client = await CodexClient.ready(url);
    await client.shell('p', 'read a; echo "from-stdin:$a"', { pipeStdin: true });
    const writes = [
      client.write('p', 'hel', '1'),
      client.write('p', 'hel', '1'),
      client.write('p', 'other', '1'),
      client.write('p', 'lo', '2'),
      client.write('p', '', '3'),
      client.write('p', '\n', 'w'.repeat(5000)),
      client.write('p', '\n', 'w'.repeat(5000)),
    ];
    expect(await Promise.all(writes)).toEqual(writes.map(() => ({ status: 'accepted' })));
    await client.untilClosed('p');
    expect(client.output('p')).toBe('from-stdin:hello\n');
    expect(client.of('p').map(({ params }) => params.seq)).toEqual([1, 2, 3]);
    await client.shell(
      't',
      'stty size; test -t 0 && test -t 1 && echo terminal; read a; echo "got:$a"; exit 5',
      { tty: true },
    );
    await client.untilOutput('t', 'terminal\r\n');
    await client.write('t', 'hello\n', '1');
    await client.untilClosed('t');
    expect(client.output('t')).toBe('24 80\r\nterminal\r\nhello\r\ngot:hello\r\n');
    expect(new Set(client.of('t').map(({ params }) => params.stream))).toEqual(
      new Set(['pty', undefined]),
    );
  });

  it('[CX9] many small writes keep their order', async () => {
    const client = await CodexClient.ready(url);
    await client.start('cat', ['cat'], { pipeStdin: true });
    const parts = Array.from({ length: 500 }, (_, index) => `${index} `);
    const writes = parts.map((part, index) => client.write('cat', part, `w${index}`));
    const closing = client.call('process/closeStdin', { processId: 'cat' });
    await Promise.all(writes);
    expect(await closing).toEqual({ status: 'accepted' });
    await client.untilClosed('cat');
    expect(client.output('cat')).toBe(parts.join(''));
    expect(text((await client.read('cat')).chunks)).toBe(parts.join(''));
  });

  it('[CX9] each refusal in its order: no write id, unknown, starting, no stdin, ended', async () => {
    // 14, 31
    const client = await CodexClient.ready(url);
    const chunk = Buffer.from('x').toString('base64');
    expect(
      await client.refusal('process/write', { processId: 'nope', chunk, writeId: '' }),
    ).toEqual({
      code: -32602,
      message: 'writeId must not be empty',
    });
    expect(
      (await client.refusal('process/write', { processId: 'nope', chunk: '!', writeId: 'a' })).code,
    ).toBe(-32602);
    expect(await client.write('nope', 'x', '1')).toEqual({ status: 'unknownProcess' });
    const [, early, read] = await Promise.all([
      client.shell('n', 'read a; echo "end:$a"'),
      client.write('n', 'x', '1'),
      client.refusal('process/read', { processId: 'n' }),
    ]);
    expect(early).toEqual({ status: 'starting' });
    expect(read).toEqual({ code: -32600, message: 'process id n is starting' });
    await client.untilClosed('n');
    expect(client.output('n')).toBe('end:\n');
    await client.start('s', ['sleep', '600']);
    expect(await client.write('s', 'x', '1')).toEqual({ status: 'stdinClosed' });
    await client.start('e', ['true'], { pipeStdin: true });
    await client.untilClosed('e');
    expect(await client.write('e', 'x', '1')).toEqual({ status: 'stdinClosed' });
  });

  it('[CX9] what the process does not take is accepted all the same, up to a bound', async () => {
    const client = await CodexClient.ready(url);
    await client.start('deaf', ['sleep', '600'], { pipeStdin: true });
    const megabyte = 'm'.repeat(1024 * 1024);
    for (let index = 0; index < 15; index += 1)
      expect(await client.write('deaf', megabyte, `w${index}`)).toEqual({ status: 'accepted' });
    const chunk = Buffer.from(megabyte.repeat(3)).toString('base64');
    const refusal = await client.refusal('process/write', {
      processId: 'deaf',
      chunk,
      writeId: 'last',
    });
    expect(refusal.message).toMatch(/bytes of input already wait/);
    expect(await client.call('process/terminate', { processId: 'deaf' })).toEqual({
      running: true,
    });
    await client.untilClosed('deaf');
  });
});

describe('signals and the end', () => {
  it('[CX10] interrupt reaches the group; unknown and ended are answered alike', async () => {
    // 32
    const client = await CodexClient.ready(url);
    await client.shell(
      'i',
      'trap "echo signal:2; exit 7" INT; echo ready; while :; do sleep 0.02; done',
    );
    await client.untilOutput('i', 'ready');
    expect(await client.call('process/signal', { processId: 'i', signal: 'interrupt' })).toEqual(
      {},
    );
    await client.untilClosed('i');
    expect(client.output('i')).toBe('ready\nsignal:2\n');
    expect(client.of('i').at(-2)?.params.exitCode).toBe(7);
    for (const processId of ['i', 'nope'])
      expect(await client.call('process/signal', { processId, signal: 'interrupt' })).toEqual({});
    expect(await client.refusal('process/signal', { processId: 'i', signal: 'kill' })).toEqual({
      code: -32602,
      message: 'unknown variant `kill`, expected `interrupt`',
    });
  });

  it('[CX10] terminate gives time to clean up, keeps the last words, and reaches who left the group', async () => {
    const client = await CodexClient.ready(url);
    await client.shell(
      't',
      'trap "echo bye; exit 8" TERM; setsid sleep 600 & echo $!; while :; do sleep 0.02; done',
    );
    await client.untilOutput('t', '\n');
    expect(await client.call('process/terminate', { processId: 't' })).toEqual({ running: true });
    await client.untilClosed('t');
    // What the shell says of its child comes on the other stream, before or after it.
    expect(client.output('t')).toMatch(/^\d+\n[^]*bye\n/);
    expect(client.of('t').at(-2)?.params.exitCode).toBe(8);
    const pid = Number.parseInt(client.output('t'), 10);
    // The kernel closes the streams of a process before it becomes a zombie.
    await turnsUntil(() => !isAlive(readEntry(pid)));
  });

  it('[CX10] what still holds the output of an ended program is ended; what a closed one left running is not', async () => {
    const client = await CodexClient.ready(url);
    await client.shell('h', 'sleep 600 & exit 0');
    await client.until(() => client.of('h').some(({ method }) => method === 'process/exited'));
    expect(await client.call('process/terminate', { processId: 'h' })).toEqual({ running: false });
    await client.untilClosed('h');
    await client.shell('k', 'sleep 601 > /dev/null 2>&1 & echo $!');
    await client.untilClosed('k');
    expect(await client.call('process/terminate', { processId: 'k' })).toEqual({ running: false });
    await client.call('process/list');
    const pid = Number.parseInt(client.output('k'), 10);
    expect(process.kill(pid, 0)).toBe(true);
    process.kill(pid, 'SIGKILL');
  });
});

describe('what we add', () => {
  it('[CX19] processes are listed, terminals resized, input ended, and any signal sent', async () => {
    const client = await CodexClient.ready(url);
    await client.shell(
      't',
      'trap "stty size" WINCH; trap "echo usr1; exit 0" USR1; echo ready; while :; do sleep 0.02; done',
      { tty: true },
    );
    await client.untilOutput('t', 'ready');
    expect(await client.call('process/resize', { processId: 't', rows: 40, cols: 120 })).toEqual(
      {},
    );
    await client.untilOutput('t', '40 120');
    const { processes } = (await client.call('process/list')) as { processes: unknown[] };
    expect(processes).toEqual([
      expect.objectContaining({
        processId: 't',
        pid: expect.any(Number) as number,
        cwd: 'file:///tmp',
        tty: true,
        size: { rows: 40, cols: 120 },
        exited: false,
        exitCode: null,
        closed: false,
      }),
    ]);
    expect(await client.call('process/signal', { processId: 't', signal: 'SIGUSR1' })).toEqual({});
    await client.untilClosed('t');
    expect(client.output('t')).toContain('usr1');
    expect(client.of('t').map(({ params }) => params.seq)).toEqual(
      client.of('t').map((_, index) => index + 1),
    );
    expect(
      (await client.refusal('process/resize', { processId: 't', rows: 1, cols: 1 })).message,
    ).toBe('process t has ended');
    expect(
      (await client.refusal('process/resize', { processId: 'n', rows: 1, cols: 1 })).message,
    ).toBe('unknown process id n');
    expect(
      (await client.refusal('process/resize', { processId: 't', rows: 0, cols: 1 })).code,
    ).toBe(-32602);
    await client.start('p', ['sleep', '600'], { pipeStdin: true });
    expect(
      (await client.refusal('process/resize', { processId: 'p', rows: 1, cols: 1 })).message,
    ).toBe('process p has no terminal');
    expect(await client.call('process/closeStdin', { processId: 'p' })).toEqual({
      status: 'accepted',
    });
    expect(await client.write('p', 'x', '1')).toEqual({ status: 'stdinClosed' });
    expect(await client.call('process/closeStdin', { processId: 'nope' })).toEqual({
      status: 'unknownProcess',
    });
  });
});

describe('floods', () => {
  it('[CX16] 5,000 requests at once during a flood are all answered', async () => {
    const client = await CodexClient.ready(url);
    await client.start('yes', ['yes', 'flood']);
    await client.untilOutput('yes', 'flood');
    const asked: Promise<Answer>[] = [];
    for (let index = 0; index < 5000; index += 1)
      asked.push(
        index % 2 === 0
          ? client.ask('environment/status')
          : client.ask('process/terminate', { processId: 'nope' }),
      );
    const answers = await Promise.all(asked);
    expect(answers.filter((answer) => 'error' in answer)).toEqual([]);
    expect(await client.call('process/terminate', { processId: 'yes' })).toEqual({ running: true });
    await client.untilClosed('yes');
    const events = client.of('yes');
    expect(events.every(({ params }, index) => params.seq === index + 1)).toBe(true);
  });

  it('[CX16] a client that does not read holds up its own process only, and gets everything afterwards', async () => {
    const [slow, quick] = [await CodexClient.ready(url), await CodexClient.ready(url)];
    const bytes = 120_000_000;
    slow.socket.pause();
    void slow.shell('big', `head -c ${bytes} /dev/zero; echo end`);
    // The other one is served while the first stands still.
    for (let index = 0; index < 5; index += 1) {
      await quick.shell(`q${index}`, 'head -c 5000000 /dev/zero');
      await quick.untilClosed(`q${index}`);
    }
    slow.socket.resume();
    await slow.untilClosed('big');
    const events = slow.of('big');
    expect(events.every(({ params }, index) => params.seq === index + 1)).toBe(true);
    const total = events.reduce(
      (total, { params }) => total + Buffer.byteLength(params.chunk ?? '', 'base64'),
      0,
    );
    expect(total).toBe(bytes + 4);
    // 42
    expect(events.every(({ params }) => (params.chunk ?? '').length <= 1_398_104)).toBe(true);
  });
});
