// Crashes under a codex session: of the server, of the keeper, of both. What a client finds afterwards, and that it is
// answered at all.

import { expect, it } from 'vitest';
import { connectKeeper } from '../../src/keeper/connect.ts';
import { isAlive, readEntry } from '../../src/system/proc-table.ts';
import { serve, type Served } from '../support/coder-client.ts';
import { CodexClient, text } from '../support/codex-client.ts';
import { ExecServer } from '../support/exec-server.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { onCleanup, temporaryFolder } from '../support/hosts.ts';
import type { ServerOptions } from '../../src/server/server.ts';

const ECHO = 'while read line; do echo "echo:$line"; done';
const LOST = expect.stringMatching(/^its keeper \(pid \d+\) died while it was running$/) as string;
const lost = { exited: true, exitCode: -1, closed: true, failure: LOST, sandboxDenied: false };

async function served(options: Partial<ServerOptions> = {}): Promise<Served & { codex: string }> {
  const made = await serve(options);
  onCleanup(() => made.stop());
  return Object.assign(made, { codex: `ws://127.0.0.1:${made.port}/codex?token=${made.token}` });
}

/** Two lines in, two lines out: with events between the output that codex does not count. */
async function talkative(client: CodexClient, id: string): Promise<void> {
  await client.shell(id, ECHO, { pipeStdin: true });
  for (const word of ['one', 'two']) {
    await client.write(id, `${word}\n`, word);
    await client.untilOutput(id, `echo:${word}\n`);
  }
}

async function keeperOf(home: string): Promise<number> {
  const link = await connectKeeper({ home, env: process.env });
  const { pid } = await link.health('*', {});
  await link.close();
  return pid;
}

it('[CX904] an attached client learns of the loss, can read the output under its numbers, and continues', async () => {
  const clock = new FakeClock();
  clock.wallOffsetMs = Date.now() - clock.nowUs() / 1000;
  const { codex, server } = await served({ clock });
  const client = await CodexClient.ready(codex);
  await talkative(client, 'p');
  const poll = client.read('p', { afterSeq: 2, waitMs: 600_000 });
  process.kill(server.keeperPid, 'SIGKILL');
  expect(await poll).toMatchObject({ ...lost, chunks: [], nextSeq: 5 });
  await client.untilClosed('p');
  expect(client.of('p').map(({ params }) => params.seq)).toEqual([1, 2, 3, 4]);
  const whole = await client.read('p');
  expect(whole).toMatchObject({ ...lost, nextSeq: 5 });
  expect(whole.chunks.map(({ seq }) => seq)).toEqual([1, 2]);
  expect(text(whole.chunks)).toBe('echo:one\necho:two\n');
  expect(text((await client.read('p', { afterSeq: 1, maxBytes: 1 })).chunks)).toBe('echo:two\n');
  expect(await client.write('p', 'x', 'three')).toEqual({ status: 'stdinClosed' });
  const named = { processId: 'p' };
  expect(await client.call('process/signal', { ...named, signal: 'interrupt' })).toEqual({});
  expect(await client.call('process/terminate', named)).toEqual({ running: false });
  // The new keeper knows the lease: a renewal does not cost the session.
  clock.advance(20_000);
  expect(await client.call('process/list')).toMatchObject({
    processes: [{ ...named, exited: true, exitCode: -1, closed: true }],
  });
  await client.start('next', ['echo', 'still here']);
  await client.untilClosed('next');
  expect(client.output('next')).toBe('still here\n');
});

it('[CX904] a client that was away when the keeper died resumes its session and finds what was printed', async () => {
  const { codex, server } = await served();
  const first = await CodexClient.ready(codex);
  await talkative(first, 'p');
  await first.start('done', ['sh', '-c', 'echo finished; exit 3']);
  await first.untilClosed('done');
  await first.kill();
  process.kill(server.keeperPid, 'SIGKILL');
  const second = await CodexClient.ready(codex, { resume: first.session });
  expect(second.session).toBe(first.session);
  const read = await second.read('p', { afterSeq: 1, maxBytes: null, waitMs: 0 });
  expect(read).toMatchObject({ ...lost, nextSeq: 5 });
  expect(read.chunks.map(({ seq }) => seq)).toEqual([2]);
  expect(text(read.chunks)).toBe('echo:two\n');
  const done = await second.read('done');
  expect(done).toMatchObject({ exited: true, exitCode: 3, closed: true, failure: null });
  expect(text(done.chunks)).toBe('finished\n');
  expect(second.notifications).toEqual([]);
});

it('[CX904] what is still alive of a lost process is ended when the client terminates it', async () => {
  const { codex, server } = await served();
  const client = await CodexClient.ready(codex);
  await client.shell('p', 'echo $$; exec sleep 600');
  await client.untilOutput('p', '\n');
  const pid = Number(client.output('p'));
  process.kill(server.keeperPid, 'SIGKILL');
  await client.untilClosed('p');
  expect(isAlive(readEntry(pid))).toBe(true);
  expect(await client.call('process/terminate', { processId: 'p' })).toEqual({ running: false });
  await server.host.wait('*', { waits: [{ id: 'p', for: [{ kind: 'settled' }] }] });
  expect(isAlive(readEntry(pid))).toBe(false);
});

it('[CX904] when both are killed, the next server resumes the session, and unknown stays unknown', async () => {
  const home = temporaryFolder();
  const server = new ExecServer(home);
  await server.start();
  const first = await CodexClient.ready(server.url);
  await talkative(first, 'p');
  const keeper = await keeperOf(home);
  await server.kill();
  process.kill(keeper, 'SIGKILL');
  await server.start();
  const second = await CodexClient.ready(server.url, { resume: first.session });
  const read = await second.read('p', { waitMs: 600_000 });
  expect(read).toMatchObject({ ...lost, nextSeq: 5 });
  expect(text(read.chunks)).toBe('echo:one\necho:two\n');
  const stranger = await CodexClient.connect(server.url);
  const resumeSessionId = '00000000-0000-4000-8000-000000000000';
  expect(await stranger.refusal('initialize', { clientName: 'x', resumeSessionId })).toEqual({
    code: -32600,
    message: `unknown session id ${resumeSessionId}`,
  });
});

it('[CX905] names, writes, ends and unread output are known to the server that comes after', async () => {
  const server = new ExecServer(temporaryFolder());
  await server.start();
  const first = await CodexClient.ready(server.url);
  const odd = 'ein Prozeß/№ 1\n';
  await first.shell(odd, ECHO, { pipeStdin: true });
  await first.shell('tty', 'stty -echo; echo up; read a; echo "<$a>"; read b; echo "<$b>"', {
    tty: true,
  });
  await first.untilOutput('tty', 'up');
  await first.shell('ends', 'read a; echo "last:$a"; exit 7', { pipeStdin: true });
  await first.write(odd, 'one\n', 'w1');
  await first.untilOutput(odd, 'echo:one\n');
  await first.write('tty', 'typed\n', 't1');
  await first.untilOutput('tty', '<typed>');
  // Not waited for: whether it was applied is not known to the client.
  const ending = first.write('ends', 'words\n', 'e1');
  await ending;
  await server.kill();
  await server.start();
  const second = await CodexClient.ready(server.url, { resume: first.session });
  const { processes } = (await second.call('process/list')) as {
    processes: { processId: string }[];
  };
  expect(processes.map(({ processId }) => processId).sort()).toEqual(['ends', odd, 'tty'].sort());
  // Repeated, as by a client that never saw the answers; then something new.
  for (const [id, data, writeId] of [
    [odd, 'one\n', 'w1'],
    ['tty', 'typed\n', 't1'],
    ['ends', 'words\n', 'e1'],
  ] as const)
    expect(await second.write(id, data, writeId)).toEqual({ status: 'accepted' });
  await second.write(odd, 'two\n', 'w2');
  await second.write('tty', 'more\n', 't2');
  await second.untilOutput(odd, 'echo:two\n');
  expect(text((await second.read(odd)).chunks)).toBe('echo:one\necho:two\n');
  await second.untilOutput('tty', '<more>\r\n');
  expect(text((await second.read('tty')).chunks)).toBe('up\r\n<typed>\r\n<more>\r\n');
  const end = await second.read('ends', { waitMs: 60_000 });
  expect(text(end.chunks)).toBe('last:words\n');
  // An id stays taken, also for a server that never saw its start.
  const again = { processId: odd, argv: ['true'], cwd: 'file:///', env: {}, tty: false };
  expect((await second.refusal('process/start', again)).message).toBe(
    `process ${odd} already exists`,
  );
});
