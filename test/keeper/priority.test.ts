// Keeper and server go before what they have started, where they may; what they start is as usual.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { getPriority, setPriority } from 'node:os';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import type { KeeperLink } from '../../src/keeper/link.ts';
import { main } from '../support/command-line.ts';
import {
  onCleanup,
  outputText,
  overKeeper,
  startProcess,
  stopKeeper,
  temporaryFolder,
  waitFor,
} from '../support/hosts.ts';

/** Keepers and servers go ahead from the usual priority, where this user may be given another; else they keep theirs. */
async function expectedPriority(): Promise<number> {
  return getPriority() === 0 && (await mayGoAhead()) ? -10 : getPriority();
}

async function mayGoAhead(): Promise<boolean> {
  const child = spawn('cat', { stdio: ['pipe', 'ignore', 'ignore'] });
  await once(child, 'spawn');
  try {
    setPriority(child.pid ?? 0, -1);
    return true;
  } catch {
    return false;
  } finally {
    child.stdin.end();
    await once(child, 'exit');
  }
}

async function toldBy(link: KeeperLink, spec: Parameters<typeof startProcess>[1]): Promise<string> {
  const id = await startProcess(link, spec);
  await waitFor(link, id, { kind: 'closed' });
  return (await outputText(link, id)).trim();
}

it('[K62] a keeper goes before what it has started, where it may; what it starts is as usual', async () => {
  const expected = await expectedPriority();
  const link = await overKeeper();
  const { pid } = link.keeper;
  const argv = ['nice'];
  const alone = [await toldBy(link, { command: 'nice' }), await toldBy(link, { argv })];
  // Many at once are started by threads.
  const crowd = await Promise.all(Array.from({ length: 20 }, () => toldBy(link, { argv })));
  const terminal = await toldBy(link, { argv, streams: 'pty' });
  expect(new Set([...alone, ...crowd, terminal])).toEqual(new Set([String(getPriority())]));
  expect(getPriority(pid)).toBe(expected);
  // The 41st field of the line: 0 is the usual policy.
  const policy = `sed 's/.*) //' /proc/self/stat | cut -d' ' -f39`;
  expect(await toldBy(link, { command: policy })).toBe('0');
  expect(await toldBy(link, { command: policy, streams: 'pty' })).toBe('0');
});

it('[K62] so does a server, and the keeper that it starts begins as usual', async () => {
  const expected = await expectedPriority();
  const home = temporaryFolder();
  const server = spawn(process.execPath, [main, 'serve', '--json', '--home', home], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onCleanup(async () => {
    server.kill();
    await once(server, 'exit');
    await stopKeeper(home);
  });
  const [line] = (await once(createInterface({ input: server.stdout }), 'line')) as [string];
  const { keeperPid } = JSON.parse(line) as { keeperPid: number };
  expect([getPriority(server.pid), getPriority(keeperPid)]).toEqual([expected, expected]);
});

it('[K62] a keeper that somebody has given another priority keeps it', async () => {
  const home = temporaryFolder();
  onCleanup(() => stopKeeper(home));
  const words = ['-n', '3', process.execPath, main, 'run', '--home', home, 'nice'];
  const { stdout } = await promisify(execFile)('nice', words);
  const expected = getPriority() + 3;
  expect(stdout.trim()).toBe(String(expected));
  const { keeper } = await overKeeper({ folder: home });
  expect(getPriority(keeper.pid)).toBe(expected);
});
