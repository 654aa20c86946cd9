// The SDK, over a host in this program, over a keeper and over HTTP.

import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { connect as connectSocket, createServer as listenOn, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { ConnectionLease } from '../../src/client/connection-lease.ts';
import { connect } from '../../src/client/connect.ts';
import type { Api } from '../../src/client/api.ts';
import { Holdfast } from '../../src/client/holdfast.ts';
import { embed } from '../../src/embed.ts';
import { endServer } from '../../src/cli/local/server.ts';
import { connectKeeper } from '../../src/keeper/connect.ts';
import { keeperApi } from '../../src/server/keeper-api.ts';
import { firstLine } from '../support/command-line.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { failure, onCleanup, program, stopKeeper, temporaryFolder } from '../support/hosts.ts';
import { sized } from '../support/slow.ts';

const main = program('../../dist/cli/main.js');
const run = promisify(execFile);

interface Ready {
  readonly url: string;
  readonly socket: string;
  readonly tokenFile: string;
  readonly pid: number;
  readonly keeperPid: number;
  readonly home: string;
  readonly version: string;
}

/** A server of its own, as a person starts it. */
async function launch(
  home: string,
  ...args: string[]
): Promise<{ ready: Ready; server: ChildProcess }> {
  const words = [main, 'serve', '--home', home, '--json', '--token-file', join(home, 'token')];
  const server = spawn(process.execPath, [...words, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, HOLDFAST_IDLE: '60s' },
  });
  return { ready: JSON.parse(await firstLine(server.stdout)) as Ready, server };
}

async function serve(home: string, ...args: string[]): ReturnType<typeof launch> {
  const started = await launch(home, ...args);
  onCleanup(() => void started.server.kill('SIGKILL'));
  return started;
}

/** Goes between a server and its local callers, and tells when a ping of theirs has been answered. */
async function goBetween(socket: string): Promise<{ readonly pinged: Promise<void> }> {
  const behind = `${socket}.behind`;
  renameSync(socket, behind);
  let answered = (): void => undefined;
  const pinged = new Promise<void>((resolve) => {
    answered = resolve;
  });
  const between = listenOn((near) => {
    const far = connectSocket(behind);
    near.on('data', (chunk) => {
      if (chunk.includes('GET /readyz')) far.once('data', answered);
    });
    near.pipe(far).pipe(near);
    for (const side of [near, far]) side.on('error', () => [near, far].map((it) => it.destroy()));
  });
  onCleanup(() => void between.close());
  await once(between.listen(socket), 'listening');
  return { pinged };
}

/** The server of all tests over HTTP or its keeper: each of them has an owner of its own there. */
let shared: { home: string; server: ChildProcess; ready: Ready } | undefined;
let owners = 0;

afterAll(async () => {
  if (!shared) return;
  shared.server.kill('SIGKILL');
  await stopKeeper(shared.home);
  rmSync(shared.home, { recursive: true, force: true });
});

async function sharedServer(): Promise<NonNullable<typeof shared>> {
  if (shared) return shared;
  const home = mkdtempSync(join(tmpdir(), 'holdfast-sdk-'));
  return (shared = { home, ...(await launch(home)) });
}

async function overHttp(): Promise<Holdfast> {
  const { url, tokenFile } = (await sharedServer()).ready;
  const holdfast = await connect({
    url,
    token: readFileSync(tokenFile, 'utf8').trim(),
    owner: `owner-${(owners += 1)}`,
  });
  onCleanup(() => holdfast.close());
  return holdfast;
}

/** Over a link to that server's keeper, as `holdfast mcp` works. */
async function overKeeper(): Promise<Holdfast> {
  const { home } = await sharedServer();
  const api = await keeperApi({ home, env: process.env }, `owner-${(owners += 1)}`);
  const holdfast = new Holdfast(api);
  onCleanup(() => holdfast.close());
  return holdfast;
}

async function inProcess(): Promise<Holdfast> {
  const holdfast = await embed({ folder: temporaryFolder() });
  onCleanup(() => holdfast.close());
  return holdfast;
}

for (const [name, make] of [
  ['embedded', inProcess],
  ['over a keeper', overKeeper],
  ['over HTTP', overHttp],
] as const) {
  describe(`the SDK ${name}`, () => {
    it('[T1] run answers with the outcome and the output; a non-zero exit is a value', async () => {
      const holdfast = await make();
      const result = await holdfast.run('echo out; echo err >&2; exit 3');
      expect(result).toMatchObject({
        exitCode: 3,
        timedOut: false,
        outcome: { kind: 'exit', code: 3 },
      });
      expect(result).toMatchObject({ stdout: 'out\n', stderr: 'err\n', truncated: false });
      const merged = await holdfast.run('echo out; echo err >&2', { streams: 'merged' });
      expect(merged.output).toEqual(expect.objectContaining({ text: 'out\nerr\n' }));
      const argv = await holdfast.run(['printf', '%s', '$HOME'], { name: 'literal' });
      expect(argv.output.text).toBe('$HOME');
      expect((await holdfast.list({ name: 'literal' })).map(({ id }) => id)).toEqual([
        argv.handle.id,
      ]);
    });

    it('[T41] run of a command that prints nothing is one request', async () => {
      const holdfast = await make();
      const asked: string[] = [];
      const counted = Object.fromEntries(
        Object.entries(holdfast.api).map(([name, ask]) => [
          name,
          typeof ask === 'function'
            ? (...given: unknown[]) => {
                asked.push(name);
                return (ask as (...args: unknown[]) => unknown)(...given);
              }
            : ask,
        ]),
      );
      const result = await new Holdfast(counted as unknown as Api).run('exit 4');
      expect(result).toMatchObject({ exitCode: 4, stdout: '', stderr: '', truncated: false });
      expect(result.output).toEqual({ text: '' });
      expect(asked).toEqual(['start']);
      expect(await result.handle.status()).toMatchObject({ state: 'closed' });
    });

    it('[T2] a handle waits for a line, a port, silence and the end, and says when none can come', async () => {
      const holdfast = await make();
      const server =
        'const s=require("net").createServer().listen(0,"127.0.0.1",()=>console.log("ready on",s.address().port))';
      const handle = await holdfast.start([process.execPath, '-e', server]);
      expect(await handle.waitForLog(/ready on (\d+)/)).toMatchObject({
        match: expect.stringMatching(/ready on \d+/) as string,
      });
      const port = await handle.waitForPort();
      expect((await handle.ports()).map((each) => each.port)).toEqual([port]);
      expect(await handle.waitForIdle(50)).toBe(true);
      expect(await handle.wait({ timeoutMs: 10 })).toBeUndefined();
      expect(await handle.terminate({ by: 'test' })).toMatchObject({ survivors: [] });
      expect(await handle.waitForExit()).toMatchObject({
        signal: 'SIGTERM',
        outcome: { by: 'test' },
      });
      expect(await handle.waitForLog('never')).toBeUndefined();
    });

    it('[T3] logs are followed as they come, stdin is written and ended, binary stays binary', async () => {
      const holdfast = await make();
      const handle = await holdfast.start('cat; printf "\\377\\000end" >&2', {
        stdin: 'pipe',
        streams: 'separate',
      });
      const bytes: Buffer[] = [];
      const text: string[] = [];
      await handle.stdin.write('first €\n');
      for await (const chunk of handle.logs({ follow: true })) {
        bytes.push(chunk.bytes);
        text.push(`${chunk.stream}:${chunk.text}`);
        if (text.length === 1) await handle.stdin.end(Buffer.from('second\n'));
      }
      expect(text.slice(0, 2)).toEqual(['stdout:first €\n', 'stdout:second\n']);
      expect(Buffer.concat(bytes).subarray(-5)).toEqual(Buffer.from([0xff, 0, 0x65, 0x6e, 0x64]));
      const again: string[] = [];
      const { value: first } = await handle.logs().next();
      for await (const chunk of handle.logs({ since: (first as { seq: number }).seq }))
        again.push(chunk.text);
      expect(again.join('').startsWith('second\n')).toBe(true);
    });

    it('[T20] what is started under the lease of the connection shows it, processes and terminals', async () => {
      const holdfast = await make();
      const handle = await holdfast.start('sleep 600', { lease: true });
      const terminal = await holdfast.terminal({ argv: ['sleep', '600'], lease: true });
      const { lease } = await handle.status();
      expect(lease).toMatch(/^sdk-/);
      expect((await terminal.status()).lease).toBe(lease);
      const result = await holdfast.run('cat', { input: 'x', lease: true });
      expect(result).toMatchObject({ stdout: 'x', process: { lease } });
      expect((await holdfast.run('true')).process).not.toHaveProperty('lease');
    });

    it('[T4] an abort ends the wait and nothing else; errors carry their code', async () => {
      const holdfast = await make();
      const handle = await holdfast.start('sleep 1000');
      const controller = new AbortController();
      const waiting = failure(handle.wait({ signal: controller.signal }));
      controller.abort();
      expect((await waiting).code).toBe('aborted');
      expect((await handle.status()).state).toBe('running');
      expect((await failure(holdfast.get('no-such-id'))).code).toBe('not_found');
      expect((await failure(holdfast.start(['no-such-program']))).code).toBe('program_not_found');
      await handle.remove({ force: true });
      expect((await failure(handle.status())).code).toBe('not_found');
    });

    it('[T11] ending what has ended resolves, and says that nothing is left', async () => {
      const holdfast = await make();
      const { handle } = await holdfast.run('true');
      const nothing = { signalled: [], escapees: [], survivors: [], escalated: false };
      expect(await handle.terminate()).toEqual(nothing);
      expect(await handle.kill()).toEqual(nothing);
      expect((await failure(handle.signal('SIGINT'))).code).toBe('not_running');
      const one = await holdfast.start('sleep 1000');
      expect(await holdfast.waitForAll([one, handle], { timeoutMs: 1 })).toBeUndefined();
      await one.kill();
      expect(await holdfast.waitForAll([one, handle])).toMatchObject([
        { signal: 'SIGKILL' },
        { exitCode: 0 },
      ]);
    });

    it('[API61] processes are listed by a label, with its value or whatever that is', async () => {
      const holdfast = await make();
      const labels = [{ project: 'web', tier: 'a=b' }, { project: 'api' }, {}];
      const started = await Promise.all(
        labels.map((each) => holdfast.start('true', { labels: each })),
      );
      const ids = started.map(({ id }) => id);
      const numbers = async (label: string): Promise<number[]> =>
        (await holdfast.list({ label }))
          .map(({ id }) => ids.indexOf(id))
          .sort((one, other) => one - other);
      expect(await numbers('project')).toEqual([0, 1]);
      expect(await numbers('project=api')).toEqual([1]);
      expect(await numbers('tier=a=b')).toEqual([0]);
      expect(await numbers('project=')).toEqual([]);
      expect(await numbers('constructor')).toEqual([]);
    });

    it('[T15] what is declared with `await using` is ended at the end of its block', async () => {
      const holdfast = await make();
      let kept;
      {
        await using one = await holdfast.start('sleep 1000');
        await using terminal = await holdfast.terminal({ argv: ['cat'] });
        kept = { one, terminal };
      }
      expect(await kept.one.waitForExit()).toMatchObject({ signal: 'SIGTERM' });
      expect((await failure(kept.terminal.status())).code).toBe('not_found');
    });

    it('[T12] run takes input, keeps stdout and stderr whole or says that they are not', async () => {
      const holdfast = await make();
      const given = await holdfast.run('cat; echo seen >&2', { input: 'h\u00e9llo' });
      expect(given).toMatchObject({ stdout: 'h\u00e9llo', stderr: 'seen\n', truncated: false });
      const unread = await holdfast.run('exec 0<&-; exit 4', { input: 'x'.repeat(1_000_000) });
      expect(unread).toMatchObject({ exitCode: 4, stdout: '' });
      const much = 'x'.repeat(3_000_000);
      expect((await holdfast.run('wc -c', { input: much })).stdout.trim()).toBe('3000000');
      const long = await holdfast.run('seq 1 20000; echo err >&2');
      expect(long.stdout.split('\n')).toHaveLength(20_001);
      expect(long.stderr).toBe('err\n');
      const cut = await holdfast.run('printf h\u00e9llo', { maxBytes: 2 });
      expect(cut).toMatchObject({ stdout: 'h', truncated: true });
    });

    it('[T13] output is a stream of Node or of the Web, of one stream or of all', async () => {
      const holdfast = await make();
      const handle = await holdfast.start('cat; echo err >&2', {
        stdin: 'pipe',
        streams: 'separate',
      });
      const web = new Response(handle.stream({ stream: 'stdout' })).text();
      const chunks: Buffer[] = [];
      const node = (async () => {
        for await (const chunk of handle.readable({ stream: 'stderr' }) as AsyncIterable<Buffer>)
          chunks.push(chunk);
      })();
      await handle.stdin.end('in and out');
      expect(await web).toBe('in and out');
      await node;
      expect(Buffer.concat(chunks).toString()).toBe('err\n');
    });

    it('[T14] a terminal runs, is typed into, looked at and closed', async () => {
      const holdfast = await make();
      const terminal = await holdfast.terminal({ argv: ['sh'], size: { cols: 40, rows: 10 } });
      expect(await terminal.run('echo $((6*7))')).toMatchObject({ completed: true, exitCode: 0 });
      await terminal.type('echo typed');
      await terminal.keys('Enter');
      expect(await terminal.waitForScreen({ text: 'typed' })).toMatchObject({ matched: true });
      expect((await terminal.screen()).text).toContain('42');
      expect((await terminal.screenshot()).subarray(1, 4).toString()).toBe('PNG');
      await terminal.close();
      expect((await failure(terminal.status())).code).toBe('not_found');
    });

    it('[T5] completions come as events until they are acknowledged', async () => {
      const holdfast = await make();
      await holdfast.start('exit 7', { name: 'seven' });
      for await (const completion of holdfast.events()) {
        expect(completion).toMatchObject({ name: 'seven', outcome: { kind: 'exit', code: 7 } });
        break;
      }
      for await (const completion of holdfast.events()) {
        expect(completion.name).toBe('seven');
        break;
      }
    });
  });
}

describe('the local server', () => {
  it('[T6] connect finds it or starts it, and what it started outlives the server', async () => {
    const home = temporaryFolder();
    onCleanup(() => stopKeeper(home));
    const env = { ...process.env, HOLDFAST_IDLE: '60s' };
    const [one, two] = await Promise.all([connect({ home, env }), connect({ home, env })]);
    const handle = await one.start('sleep 1000', { key: 'same' });
    expect((await two.start('sleep 1000', { key: 'same' })).id).toBe(handle.id);
    const { stdout } = await run(process.execPath, [main, 'status', '--home', home, '--json'], {
      env,
    });
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, result: { live: 1 } });
    await Promise.all([one.close(), two.close()]);
    await endServer(home);
  });

  it('[T9] processes have the environment and the directory of the caller, as `holdfast run` gives them', async () => {
    const home = temporaryFolder();
    const cwd = temporaryFolder();
    onCleanup(() => stopKeeper(home));
    onCleanup(async () => void (await endServer(home)));
    // As npm starts a server: what it adds must reach no process.
    const npm = {
      npm_config_ignore_scripts: 'true',
      npm_package_name: 'x',
      INIT_CWD: '/',
      TMUX: 'x',
      PATH: `/x/node_modules/.bin:${process.env['PATH']}`,
    };
    const idle = { HOLDFAST_IDLE: '60s', HOLDFAST_HOME: home };
    const woken = await connect({ env: { ...process.env, ...npm, ...idle }, inherit: 'host' });
    const file = join(cwd, 'caller.mjs');
    const show = 'echo "$FOO:$HOLDFAST_HOME:$(pwd -P):$npm_package_name:$TERM"';
    writeFileSync(
      file,
      `import { connect } from ${JSON.stringify(program('../../dist/index.js'))};
      const holdfast = await connect();
      console.log((await holdfast.run(${JSON.stringify(show)})).stdout);
      console.log((await holdfast.run('echo $FOO', { env: { FOO: 'over' } })).stdout);
      console.log((await holdfast.run('echo "[$FOO]"', { environment: { inherit: 'core' } })).stdout);
      await holdfast.close();`,
    );
    const env = { ...process.env, ...idle, FOO: 'mine', TERM: 'vt52', npm_package_name: 'own' };
    const { stdout } = await run(process.execPath, [file], { cwd, env });
    expect(stdout).toBe(`mine::${realpathSync(cwd)}:own:vt52\n\nover\n\n[]\n\n`);
    const shared = await woken.run('env; pwd');
    expect(shared.stdout).not.toMatch(/^(npm_|INIT_CWD|TMUX|HOLDFAST_HOME)|node_modules\/\.bin/m);
    await woken.close();
  });

  it('[T10] a server that cannot start says why at once', async () => {
    const home = temporaryFolder();
    chmodSync(home, 0o755);
    const problem = await failure(connect({ home, reconnectMs: 600_000 }));
    expect(problem.code).toBe('home_unsafe');
  });

  it('[C41] a server that does not run at its URL is not looked for on this machine', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await new Promise((closed) => void server.close(closed));
    const url = `http://127.0.0.1:${port}`;
    const problem = await failure(connect({ url, token: 't', reconnectMs: 0 }));
    const remedy = expect.stringContaining(`"holdfast serve" runs at ${url}`);
    expect(problem).toMatchObject({ code: 'keeper_unreachable', remedy });
  });

  it('[T16] a URL with a path reaches a server behind a prefix', async () => {
    const seen: (string | undefined)[] = [];
    const proxy = createServer((request, response) => {
      seen.push(request.url);
      response.end('{"version":"x","uptimeMs":1,"children":"posix"}');
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    onCleanup(() => void proxy.close());
    const { port } = proxy.address() as AddressInfo;
    const holdfast = await connect({ url: `http://127.0.0.1:${port}/holdfast/`, token: 't' });
    await holdfast.close();
    expect(seen).toEqual(['/holdfast/v1/health']);
  });

  it('[T7] a killed server costs callers nothing but time: waits and followers go on without a gap', async () => {
    const home = temporaryFolder();
    onCleanup(() => stopKeeper(home));
    const { server, ready } = await serve(home);
    const env = { ...process.env, HOLDFAST_IDLE: '60s' };
    const holdfast = await connect({ home, env });
    const lines = sized(80, 300);
    const handles = await Promise.all(
      Array.from({ length: sized(5, 20) }, (_, index) =>
        holdfast.start(
          `i=0; while [ $i -lt ${lines} ]; do echo "p${index} $i"; i=$((i+1)); sleep 0.005; done; exit ${index}`,
        ),
      ),
    );
    const exits = handles.flatMap((handle) =>
      Array.from({ length: 5 }, () => handle.waitForExit()),
    );
    let kill = (): void => undefined;
    const firstLines = new Promise<void>((resolve) => (kill = resolve));
    const followed = handles.map(async (handle) => {
      let text = '';
      for await (const chunk of handle.logs({ follow: true })) {
        text += chunk.text;
        if (chunk.missedBytes > 0) throw new Error('something is missing');
        if (text.length > 200) kill();
      }
      return text;
    });
    await firstLines;
    server.kill('SIGKILL');
    await once(server, 'exit');
    const texts = await Promise.all(followed);
    for (const [index, text] of texts.entries()) {
      expect(text).toBe(Array.from({ length: lines }, (_, line) => `p${index} ${line}\n`).join(''));
    }
    const codes = (await Promise.all(exits)).map(({ exitCode }) => exitCode);
    expect(codes).toEqual(handles.flatMap((_, index) => Array.from({ length: 5 }, () => index)));
    expect(ready.keeperPid).toBe((await holdfast.health()).pid);
    await holdfast.close();
    await endServer(home);
  });

  it('[T8] a second server for the same home is refused; TERM ends a server and nothing else', async () => {
    const home = temporaryFolder();
    onCleanup(() => stopKeeper(home));
    const { server, ready } = await serve(home);
    const second = await run(process.execPath, [main, 'serve', '--home', home, '--json']).catch(
      (error: unknown) => error as { stdout: string; code: number },
    );
    expect(JSON.parse(second.stdout)).toMatchObject({
      ok: false,
      error: { code: 'server_running' },
    });
    const holdfast = await connect({ home, startIfMissing: false });
    const handle = await holdfast.start('sleep 1000');
    server.kill('SIGTERM');
    expect(await once(server, 'exit')).toEqual([0, null]);
    await holdfast.close();
    const again = await serve(home);
    expect(again.ready.keeperPid).toBe(ready.keeperPid);
    const later = await connect({ home });
    expect((await (await later.get(handle.id)).status()).state).toBe('running');
    await later.close();
  });
});

describe('the lease of a connection', () => {
  /** A server of its own and a connection to it; both, and a server that came after it, end with the test. */
  async function served(): Promise<{ home: string; server: ChildProcess; holdfast: Holdfast }> {
    const home = temporaryFolder();
    onCleanup(async () => void (await run(process.execPath, [main, 'shutdown', '--home', home])));
    const { server } = await serve(home);
    const holdfast = await connect({ home, env: { ...process.env, HOLDFAST_IDLE: '60s' } });
    onCleanup(() => holdfast.close());
    return { home, server, holdfast };
  }

  it('[T20] a program that is killed takes its leased processes and terminals with it, and no others', async () => {
    const { home, holdfast } = await served();
    const leaser = spawn(process.execPath, [program('leaser.mjs'), home], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onCleanup(() => void leaser.kill('SIGKILL'));
    const ids = JSON.parse(await firstLine(leaser.stdout)) as Record<
      'process' | 'terminal' | 'free',
      string
    >;
    leaser.kill('SIGKILL');
    for (const id of [ids.process, ids.terminal])
      expect(await (await holdfast.get(id)).waitForExit()).toMatchObject({
        outcome: { kind: 'signal', by: 'lease ended' },
      });
    expect((await (await holdfast.get(ids.free)).status()).state).toBe('running');
  });

  it('[T21] a renewal that finds the server killed is made with the next one, and nothing is ended', async () => {
    const { server, holdfast } = await served();
    const clock = new FakeClock();
    const renewals: Promise<unknown>[] = [];
    const holdLease: Holdfast['api']['holdLease'] = (...args) => {
      const renewal = holdfast.api.holdLease(...args);
      renewals.push(renewal);
      return renewal;
    };
    const lease = new ConnectionLease({ holdLease }, { leaseMs: 600_000 }, clock);
    const { process: leased } = await lease.start((name) =>
      holdfast.api.start({ argv: ['sleep', '600'], lease: name }),
    );
    server.kill('SIGKILL');
    await once(server, 'exit');
    clock.advance(200_000);
    expect(renewals).toHaveLength(2);
    expect(await renewals[1]).toEqual({});
    const handle = await holdfast.get(leased.id);
    expect(await handle.status()).toMatchObject({ state: 'running', lease: leased.lease });
    // A program that stood still for longer than its lease opens it again.
    await holdfast.api.holdLease({ name: leased.lease ?? '', ttlMs: 0 });
    await handle.waitForExit();
    const again = await lease.start((name) =>
      holdfast.api.start({ argv: ['sleep', '600'], lease: name }),
    );
    expect(again.process.lease).toBe(leased.lease);
    await lease.end();
    const ended = await (await holdfast.get(again.process.id)).waitForExit();
    expect(ended.outcome).toMatchObject({ by: 'lease ended' });
    expect(clock.pending).toBe(0);
  });

  it('[T22] closing a connection ends what it leased: all its starts if `connect` said so, else those that ask', async () => {
    const { home, holdfast } = await served();
    const leasing = await connect({ home, lease: true });
    const leased = [
      await leasing.start('sleep 600'),
      await leasing.terminal(),
      await leasing.start('sleep 600', { streams: 'pty', key: 'mine' }),
    ];
    const kept = await leasing.start('sleep 600', { lease: false });
    expect((await leasing.run('exit 3')).exitCode).toBe(3);
    const asking = await connect({ home });
    leased.push(await asking.start('sleep 600', { lease: true }));
    const free = await asking.start('sleep 600');
    const inspect = [main, 'inspect', leased[0]?.id ?? '', '--home', home];
    const { stdout } = await run(process.execPath, inspect);
    expect(stdout).toMatch(/^lease +sdk-/m);
    await leasing.close();
    await asking.close();
    for (const { id } of leased)
      expect(await (await holdfast.get(id)).waitForExit()).toMatchObject({
        outcome: { by: 'lease ended' },
      });
    for (const { id } of [kept, free])
      expect((await (await holdfast.get(id)).status()).state).toBe('running');
    expect(await failure(leasing.start('true'))).toMatchObject({ code: 'lease_ended' });
    expect(await failure(connect({ home, leaseMs: 10 }))).toMatchObject({ code: 'invalid_input' });
  });
});

describe('the README and the page on the SDK', () => {
  it('[SV18] whole programs in them run as they stand', async () => {
    const blocks = (page: string): string[] =>
      [...readFileSync(program(`../../${page}`), 'utf8').matchAll(/```ts\n(.*?)```/gs)].map(
        ([, code]) => code ?? '',
      );
    const examples = [...blocks('README.md'), ...blocks('docs/sdk.md').slice(-2)];
    expect(examples).toHaveLength(3);
    const folder = temporaryFolder();
    const home = join(folder, '.holdfast');
    onCleanup(async () => void (await run(process.execPath, [main, 'shutdown', '--home', home])));
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(program('../..'), join(folder, 'node_modules/holdfast'));
    writeFileSync(
      join(folder, 'server.js'),
      `require('http').createServer().listen(0, '127.0.0.1', () => console.log('ready'));`,
    );
    const results: string[] = [];
    for (const [index, code] of examples.entries()) {
      const file = join(folder, `example-${index}.mjs`);
      writeFileSync(file, code);
      const env = { ...process.env, HOME: folder, HOLDFAST_IDLE: '60s' };
      const { stdout, stderr } = await run(process.execPath, [file], { cwd: folder, env });
      expect(stderr).toBe('');
      results.push(stdout);
    }
    expect(results[0]).toMatch(/^3 .*server\.js\n\n$/s);
    expect(results[1]).toMatch(/^3 .*server\.js\n\nlistens on \d+\nmerged ready\n\nleft: 0\n$/s);
    expect(results[2]).toBe("hello\ntrue { kind: 'exit', code: 0 }\n");
  });
});

describe('a home whose path is too long for a socket', () => {
  it('[SV25] has the server’s socket in a private folder elsewhere: one server, found by the SDK, nothing left behind', async () => {
    const folder = temporaryFolder();
    const home = join(folder, 'x'.repeat(120));
    onCleanup(() => stopKeeper(home));
    const { ready, server } = await serve(home);
    expect(Buffer.byteLength(ready.socket)).toBeLessThan(108);
    expect(lstatSync(ready.socket).mode & 0o777).toBe(0o600);
    expect(lstatSync(join(ready.socket, '..')).mode & 0o777).toBe(0o700);
    // Nothing beside the home, where the cut path would lie.
    expect(readdirSync(folder)).toEqual(['x'.repeat(120)]);
    const second = await run(process.execPath, [main, 'serve', '--home', home, '--json']).catch(
      (error: unknown) => error as { stdout: string },
    );
    expect(JSON.parse(second.stdout)).toMatchObject({ error: { code: 'server_running' } });
    const holdfast = await connect({ home, startIfMissing: false });
    onCleanup(() => holdfast.close());
    expect((await holdfast.run('echo there')).outcome).toMatchObject({ code: 0 });
    server.kill('SIGTERM');
    await once(server, 'exit');
    expect(existsSync(ready.socket)).toBe(false);
    const long = join(folder, 'y'.repeat(120));
    const args = ['serve', '--home', join(folder, 'other'), '--socket', long, '--json'];
    const refused = await run(process.execPath, [main, ...args]).catch(
      (error: unknown) => error as { stdout: string },
    );
    expect(JSON.parse(refused.stdout)).toMatchObject({ error: { code: 'invalid_input' } });
  });
});

describe('what stands still', () => {
  it('[SV26] a stopped server: calls end with not_answering, a wait that it has handed over is answered', async () => {
    const home = temporaryFolder();
    onCleanup(() => stopKeeper(home));
    const { server, ready } = await serve(home);
    const { pinged } = await goBetween(ready.socket);
    const holdfast = await connect({ home });
    onCleanup(() => holdfast.close());
    const process = await holdfast.start('read _; exit 5', { stdin: 'pipe' });
    const ended = process.waitForExit();
    // A client asks beside a long wait whether the server is alive; from then on it knows the wait in the keeper's hands.
    await pinged;
    server.kill('SIGSTOP');
    const [listed, late] = await Promise.all([
      failure(holdfast.list()),
      connect({ home }).catch((error: unknown) => error),
    ]);
    expect(listed.code).toBe('not_answering');
    expect(late).toMatchObject({
      code: 'not_answering',
      message: `The server (pid ${server.pid}) does not answer: it is stopped; "kill -CONT ${server.pid}" continues it.`,
    });
    const link = await connectKeeper({ home, env: {}, startIfMissing: false });
    onCleanup(() => link.close());
    await link.write('*', { id: process.id, data: Buffer.from('\n') });
    expect((await ended).outcome).toMatchObject({ kind: 'exit', code: 5 });
    server.kill('SIGCONT');
    expect((await holdfast.health()).version).toBeDefined();
  });

  it('[SV26] a stopped keeper: GET /v1/health and the SDK say so, and all is well when it goes on', async () => {
    const home = temporaryFolder();
    onCleanup(() => stopKeeper(home));
    const { ready } = await serve(home);
    const holdfast = await connect({ home });
    onCleanup(() => holdfast.close());
    process.kill(ready.keeperPid, 'SIGSTOP');
    try {
      const authorization = `Bearer ${readFileSync(ready.tokenFile, 'utf8').trim()}`;
      const health = await fetch(`${ready.url}/v1/health`, { headers: { authorization } });
      expect([health.status, await health.json()]).toMatchObject([
        504,
        { error: { code: 'not_answering' } },
      ]);
      const error = await failure(holdfast.list());
      expect(error.code).toBe('not_answering');
    } finally {
      process.kill(ready.keeperPid, 'SIGCONT');
    }
    const link = await connectKeeper({ home, env: {}, startIfMissing: false });
    onCleanup(() => link.close());
    await link.health('*', {});
    expect((await holdfast.run('echo on')).outcome).toMatchObject({ code: 0 });
  });
});
