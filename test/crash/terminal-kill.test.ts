// kill -9 of the server, over and over, while twenty terminals are busy and a command is waited for: the same terminals,
// the same screens as without it, and the result of the command. TERMINAL_KILLS sets how often.

import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { Holdfast } from '../../src/client/holdfast.ts';
import { httpApi } from '../../src/client/http-api.ts';
import type { TerminalHandle } from '../../src/client/terminal-handle.ts';
import { onCleanup, program, stopKeeper, temporaryFolder } from '../support/hosts.ts';
import { sized } from '../support/slow.ts';

const KILLS = Number(process.env['TERMINAL_KILLS'] ?? sized(3, 15));
const BUSY = sized(8, 20);
/** In every so manyth life of the server somebody looks, so that it dies with screens in it. */
const LOOK_EVERY = sized(2, 5);
/** Prints a screen that says exactly what came before: one number after the other, in colours, on every row. */
const COUNT = `i=0; while read -r to; do while [ $i -lt $to ]; do i=$((i+1)); printf '\\033[%d;%dH\\033[3%dm%d\\033[0m' $((i % 23 + 1)) $((i % 70 + 1)) $((i % 8)) $i; done; printf '\\033[24;1Hat %d.' $i; done`;

type ServerProcess = ChildProcessByStdio<Writable, Readable, null>;

/** The servers of one home, one after the other. The next one is loaded while the one before still serves. */
class Servers {
  private readonly home: string;
  private serving: ServerProcess | undefined;
  private spare: ServerProcess;

  constructor(home: string) {
    this.home = home;
    this.spare = this.loaded();
  }

  async next(): Promise<void> {
    const { stdin, stdout } = this.spare;
    await said(stdout, 'ready');
    stdin.write('go\n');
    await said(stdout, 'up');
    this.serving = this.spare;
    this.spare = this.loaded();
  }

  async kill(): Promise<void> {
    if (!this.serving) return;
    const ended = once(this.serving, 'exit');
    if (this.serving.kill('SIGKILL')) await ended;
  }

  async end(): Promise<void> {
    await this.kill();
    this.serving = this.spare;
    await this.kill();
  }

  private loaded(): ServerProcess {
    return spawn(process.execPath, [program('terminal-server.mjs'), this.home], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
  }
}

async function said(stream: Readable, word: string): Promise<void> {
  const [line] = (await once(stream, 'data')) as [Buffer];
  expect(line.toString()).toBe(`${word}\n`);
}

async function terminal(client: Holdfast): Promise<TerminalHandle> {
  const argv = ['/bin/sh', '-c', `stty -echo; printf '\\033[24;1Hup'; ${COUNT}`];
  const handle = await client.terminal({ argv, size: { cols: 80, rows: 24 } });
  await handle.waitForLog('up');
  return handle;
}

async function screenAt(handle: TerminalHandle, count: number): Promise<string> {
  const { matched, snapshot } = await handle.waitForScreen({
    text: `at ${count}.`,
    timeoutMs: 30_000,
  });
  expect(matched).toBe(true);
  return snapshot.screenHash;
}

describe('the server is killed', () => {
  it(
    '[TM30] (D22) again and again: the same terminals and screens as an undisturbed twin, and the run is answered',
    { timeout: 600_000 },
    async () => {
      const home = temporaryFolder();
      onCleanup(() => stopKeeper(home));
      const servers = new Servers(home);
      onCleanup(() => servers.end());
      await servers.next();
      const client = new Holdfast(httpApi({ socketPath: join(home, 'server.sock') }));
      onCleanup(() => client.close());
      const busy = await Promise.all(Array.from({ length: BUSY }, () => terminal(client)));
      const shell = await client.terminal({ argv: ['/bin/bash'] });
      const ids = busy.map(({ id }) => id).sort();
      for (let kill = 1; kill <= KILLS; kill += 1) {
        const run = shell.run(
          `echo at "gate ${kill}"; read -r gate; echo "result $gate"; (exit ${kill})`,
        );
        run.catch(() => undefined);
        // The command runs: what is typed next is its input.
        await shell.waitForLog(`at gate ${kill}`);
        if (kill % LOOK_EVERY === 0) await Promise.all(busy.map((handle) => handle.screen()));
        await Promise.all(busy.map((handle) => handle.type(`${kill * 50}\n`)));
        await servers.kill();
        await servers.next();
        await shell.type(`${kill}\n`);
        expect(await run).toMatchObject({
          completed: true,
          exitCode: kill % 256,
          output: `at gate ${kill}\n${kill}\nresult ${kill}\n`,
        });
      }
      const processes = await client.list({ state: 'running' });
      expect(
        processes
          .map(({ id }) => id)
          .filter((id) => id !== shell.id)
          .sort(),
      ).toEqual(ids);
      const twin = await terminal(client);
      for (let step = 1; step <= KILLS; step += 1) await twin.type(`${step * 50}\n`);
      const expected = await screenAt(twin, KILLS * 50);
      const hashes = await Promise.all(busy.map((handle) => screenAt(handle, KILLS * 50)));
      expect(new Set(hashes)).toEqual(new Set([expected]));
    },
  );
});
