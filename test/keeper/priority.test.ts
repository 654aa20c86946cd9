// A server goes before what the keeper has started, where it may; keeper and programs are as usual, and a crowd gives way.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism, getPriority, setPriority } from 'node:os';
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

/** Servers go ahead from the usual priority, where this user may be given another; else they keep theirs. */
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

it('[K62] a keeper has the usual priority, and so has what it starts', async () => {
  const link = await overKeeper();
  const argv = ['nice'];
  const alone = [await toldBy(link, { command: 'nice' }), await toldBy(link, { argv })];
  // Many at once are started by threads.
  const crowd = await Promise.all(Array.from({ length: 20 }, () => toldBy(link, { argv })));
  const terminal = await toldBy(link, { argv, streams: 'pty' });
  expect(new Set([...alone, ...crowd, terminal])).toEqual(new Set([String(getPriority())]));
  expect(getPriority(link.keeper.pid)).toBe(getPriority());
});

it('[K62] a server goes before what the keeper starts, where it may; the keeper that it starts is as usual', async () => {
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
  expect([getPriority(server.pid), getPriority(keeperPid)]).toEqual([expected, getPriority()]);
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

it('[H105] beside another owner, the programs of one that runs many give way, with all that they start', async () => {
  const link = await overKeeper();
  const usual = getPriority();
  const many = 2 * availableParallelism();
  const says = async (owner: string): Promise<number> => {
    const { process } = await link.start(owner, { command: 'read go; (nice)', stdin: 'pipe' });
    await link.write(owner, { id: process.id, data: Buffer.from('go\n') });
    await link.wait(owner, { waits: [{ id: process.id, for: [{ kind: 'closed' }] }] });
    return Number((await link.text(owner, { id: process.id })).text);
  };
  const busy = Array.from({ length: many }, () => link.start('bob', { argv: ['sleep', '600'] }));
  await Promise.all(busy);
  expect(await says('bob')).toBe(usual);
  expect(await says('alice')).toBe(usual);
  expect(await says('bob')).toBe(Math.max(10, usual));
  expect(await says('alice')).toBe(usual);
});
