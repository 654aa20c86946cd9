// kill -9 of the server, over and over, while twenty terminals are busy and a command is waited for: the same terminals,
// the same screens as without it, and the result of the command. TERMINAL_KILLS sets how often.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Holdfast } from '../../src/client/holdfast.ts';
import { httpApi } from '../../src/client/http-api.ts';
import type { TerminalHandle } from '../../src/client/terminal-handle.ts';
import { onCleanup, program, stopKeeper, temporaryFolder } from '../support/hosts.ts';

const KILLS = Number(process.env['TERMINAL_KILLS'] ?? 20);
const BUSY = 20;
/** Prints a screen that says exactly what came before: one number after the other, in colours, on every row. */
const COUNT = `i=0; while read -r to; do while [ $i -lt $to ]; do i=$((i+1)); printf '\\033[%d;%dH\\033[3%dm%d\\033[0m' $((i % 23 + 1)) $((i % 70 + 1)) $((i % 8)) $i; done; printf '\\033[24;1Hat %d.' $i; done`;

async function serveFrom(home: string): Promise<ChildProcess> {
  const server = spawn(process.execPath, [program('terminal-server.mjs'), home], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(server.stdout as NodeJS.ReadableStream, 'data');
  return server;
}

async function terminal(client: Holdfast): Promise<TerminalHandle> {
  const argv = ['/bin/sh', '-c', `stty -echo; printf '\\033[24;1Hup'; ${COUNT}`];
  const handle = await client.terminal({ argv, size: { cols: 80, rows: 24 } });
  await handle.waitForScreen({ text: 'up' });
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
      let server = await serveFrom(home);
      onCleanup(() => void server.kill('SIGKILL'));
      const client = new Holdfast(httpApi({ socketPath: join(home, 'server.sock') }));
      onCleanup(() => client.close());
      const busy: TerminalHandle[] = [];
      for (let each = 0; each < BUSY; each += 1) busy.push(await terminal(client));
      const shell = await client.terminal({ argv: ['/bin/bash'] });
      const ids = busy.map(({ id }) => id).sort();
      for (let kill = 1; kill <= KILLS; kill += 1) {
        const run = shell.run(`read -r gate; echo "result $gate"; (exit ${kill % 100})`);
        run.catch(() => undefined);
        // The command is typed: what is typed next is its input.
        await shell.waitForScreen({ text: 'read -r gate', timeoutMs: 30_000 });
        await Promise.all(busy.map((handle) => handle.type(`${kill * 50}\n`)));
        server.kill('SIGKILL');
        await once(server, 'exit');
        server = await serveFrom(home);
        await shell.type(`${kill}\n`);
        expect(await run).toMatchObject({
          completed: true,
          exitCode: kill % 100,
          output: `${kill}\nresult ${kill}\n`,
        });
        await shell.run('clear');
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
