// A keeper whose descriptors are used up. Starts are refused; whatever is needed to end processes still works.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { isAlive, readEntry } from '../../src/system/proc-table.ts';
import { connectKeeper } from '../../src/keeper/connect.ts';
import { openHome } from '../../src/keeper/home.ts';
import type { KeeperLink } from '../../src/keeper/link.ts';
import {
  failure,
  onCleanup,
  outputText,
  overKeeper,
  OWNER,
  program,
  startProcess,
  stopKeeper,
  temporaryFolder,
  waitFor,
} from '../support/hosts.ts';

async function linkTo(home: string): Promise<KeeperLink> {
  const link = await connectKeeper({ home, env: {}, startIfMissing: false });
  onCleanup(() => link.close());
  return link;
}

it('[K17] a keeper that refuses starts for want of descriptors can be reached, and ends what it holds', async () => {
  const home = temporaryFolder();
  const starter = [process.execPath, program('starter.mjs'), home];
  execFileSync('prlimit', ['--nofile=120:120', ...starter]);
  onCleanup(() => stopKeeper(home));
  const link = await linkTo(home);
  const started: string[] = [];
  const start = async (): Promise<void> => {
    const command = 'setsid sleep 1000 >/dev/null 2>&1 & echo up; exec sleep 1000';
    for (;;) started.push(await startProcess(link, { command }));
  };
  expect((await failure(start())).code).toBe('too_many_files');
  const terminal = link.start(OWNER, { argv: ['/bin/sleep', '1000'], streams: 'pty' });
  expect((await failure(terminal)).code).toBe('too_many_files');
  const [first = '', second = '', ...others] = started;
  expect(others.length).toBeGreaterThan(5);
  for (const id of [first, second]) await waitFor(link, id, { kind: 'text', text: 'up' });

  const another = await linkTo(home);
  const killed = await another.signal(OWNER, { id: first, signal: 'KILL' });
  const ended = await another.signal(OWNER, { id: second, signal: 'terminate' });
  for (const answer of [killed, ended]) {
    expect(answer).toMatchObject({ survivors: [], escalated: false });
    expect(answer.signalled).toHaveLength(2);
    expect(answer).not.toHaveProperty('refused');
    expect(answer).not.toHaveProperty('unsearched');
  }
  for (const id of [first, second]) expect((await another.get(OWNER, { id })).settled).toBe(true);
  // What these give back is more than another one needs, also while a journal of theirs is being put away.
  for (const id of others.slice(0, 4)) {
    await another.signal(OWNER, { id, signal: 'KILL' });
    await waitFor(another, id, { kind: 'closed' });
  }
  await startProcess(another, { argv: ['/bin/sleep', '1000'] });
  expect(readFileSync(openHome(home).log, 'utf8')).not.toContain('unexpected');
});

it('[D20] a process whose descendants cannot be looked for is not removed, so that they can be ended later', async () => {
  const home = temporaryFolder();
  const link = await overKeeper({ folder: home });
  const id = await startProcess(link, { command: 'setsid sleep 1000 >/dev/null 2>&1 & echo $!' });
  await waitFor(link, id, { kind: 'closed' });
  const daemon = Number(await outputText(link, id));
  const { pid } = link.keeper;
  const limits = readFileSync(`/proc/${pid}/limits`, 'latin1');
  const usual = /^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? '';
  const allow = (descriptors: string): void =>
    void execFileSync('prlimit', [`--pid=${pid}`, `--nofile=${descriptors}:`]);
  onCleanup(() => allow(usual));
  allow('3');
  expect((await failure(link.remove(OWNER, { id }))).code).toBe('too_many_files');
  expect((await link.get(OWNER, { id })).settled).toBe(false);
  allow(usual);
  expect(isAlive(readEntry(daemon))).toBe(true);
  await link.remove(OWNER, { id });
  expect(isAlive(readEntry(daemon))).toBe(false);
  expect((await failure(link.get(OWNER, { id }))).code).toBe('not_found');
});
