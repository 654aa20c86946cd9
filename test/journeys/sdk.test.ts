// The SDK, over a host in this program and over HTTP.

import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { connect } from '../../src/client/connect.ts';
import type { Holdfast } from '../../src/client/holdfast.ts';
import { embed } from '../../src/embed.ts';
import { failure, onCleanup, program, stopKeeper, temporaryFolder } from '../support/hosts.ts';

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
async function serve(
  home: string,
  ...args: string[]
): Promise<{ ready: Ready; server: ChildProcess }> {
  const server = spawn(process.execPath, [main, 'serve', '--home', home, '--json', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, HOLDFAST_IDLE: '60s' },
  });
  onCleanup(() => void server.kill('SIGKILL'));
  const [line] = (await once(server.stdout.setEncoding('utf8'), 'data')) as [string];
  return { ready: JSON.parse(line) as Ready, server };
}

async function overHttp(): Promise<Holdfast> {
  const home = temporaryFolder();
  onCleanup(() => stopKeeper(home));
  const { ready } = await serve(home);
  const holdfast = await connect({
    url: ready.url,
    token: readFileSync(ready.tokenFile, 'utf8').trim(),
  });
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
      expect(result.output).toEqual(expect.objectContaining({ text: 'out\nerr\n' }));
      const argv = await holdfast.run(['printf', '%s', '$HOME'], { name: 'literal' });
      expect(argv.output.text).toBe('$HOME');
      expect((await holdfast.list({ name: 'literal' })).map(({ id }) => id)).toEqual([
        argv.handle.id,
      ]);
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
      for await (const chunk of handle.logs({ since: 2 })) again.push(chunk.text);
      expect(again.join('').startsWith('second\n') || again.join('').startsWith('first')).toBe(
        true,
      );
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

    it('[T5] ends are told as events until they are taken', async () => {
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
    await endServerOf(home);
  });

  it('[T7] a killed server costs callers nothing but time: waits and followers go on without a gap', async () => {
    const home = temporaryFolder();
    onCleanup(() => stopKeeper(home));
    const { server, ready } = await serve(home);
    const env = { ...process.env, HOLDFAST_IDLE: '60s' };
    const holdfast = await connect({ home, env });
    const handles = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        holdfast.start(
          `i=0; while [ $i -lt 300 ]; do echo "p${index} $i"; i=$((i+1)); sleep 0.005; done; exit ${index}`,
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
        if (text.length > 500) kill();
      }
      return text;
    });
    await firstLines;
    server.kill('SIGKILL');
    await once(server, 'exit');
    const texts = await Promise.all(followed);
    for (const [index, text] of texts.entries()) {
      expect(text).toBe(Array.from({ length: 300 }, (_, line) => `p${index} ${line}\n`).join(''));
    }
    const codes = (await Promise.all(exits)).map(({ exitCode }) => exitCode);
    expect(codes).toEqual(handles.flatMap((_, index) => Array.from({ length: 5 }, () => index)));
    expect(ready.keeperPid).toBe((await holdfast.health()).pid);
    await holdfast.close();
    await endServerOf(home);
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

/** Ends a server that `connect` started: it belongs to nobody. */
async function endServerOf(home: string): Promise<void> {
  const { stdout } = await run('pgrep', ['-f', `main.js serve --home ${home}`]);
  for (const pid of stdout.trim().split('\n')) process.kill(Number(pid), 'SIGTERM');
}

describe('the README', () => {
  it('[SV18] its examples run as they stand', async () => {
    const readme = readFileSync(program('../../README.md'), 'utf8');
    const examples = [...readme.matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code ?? '');
    expect(examples).toHaveLength(2);
    const folder = temporaryFolder();
    const home = join(folder, '.holdfast');
    onCleanup(async () => void (await run(process.execPath, [main, 'stop', '--home', home])));
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
    expect(results[0]).toMatch(/^3 .*server\.js\n\nlistens on \d+\nmerged ready\n\nleft: 0\n$/s);
    expect(results[1]).toBe("hello\ntrue { kind: 'exit', code: 0 }\n");
  });
});
