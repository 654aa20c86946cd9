// Hosts for tests: the same suite over a host in this program and over a keeper of its own. Whatever a test starts is
// ended, and its folder removed, when the test is over.

import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe } from 'vitest';
import { errnoOf } from '../../src/base/disk.ts';
import { Host, type HostOptions } from '../../src/host/host.ts';
import { commandOf } from '../../src/system/proc-table.ts';
import { connectKeeper } from '../../src/keeper/connect.ts';
import type { KeeperLink } from '../../src/keeper/link.ts';
import type { HostApi, Met, Page } from '../../src/protocol/host-api.ts';
import type { Limits } from '../../src/protocol/limits.ts';
import type { Condition, StartSpec } from '../../src/protocol/operations.ts';
import type { ProcessEvent } from '../../src/protocol/event.ts';
import { decodeRecords } from '../../src/protocol/record.ts';
import { onCleanup } from './cleanups.ts';
import { FakeClock } from './fake-clock.ts';
import { hasNats, LEFT_OUT } from './nats.ts';

export { onCleanup };
export const OWNER = 'chat-1';
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-test-'));
  onCleanup(() => removeFolder(folder));
  return folder;
}

/** A shell that is still there may write into its home while that is removed. */
function removeFolder(folder: string): void {
  for (let left = 100; ; left -= 1) {
    try {
      rmSync(folder, { recursive: true, force: true });
      return;
    } catch (error) {
      if (errnoOf(error) !== 'ENOTEMPTY' || left === 0) throw error;
    }
  }
}

/** Holds a command until it is opened. */
export function gate(): { wait: string; open: () => void } {
  const path = join(temporaryFolder(), 'fifo');
  return {
    wait: `mkfifo ${path} 2>/dev/null; read _ < ${path}`,
    open: () => writeFileSync(path, 'go\n'),
  };
}

/** Takes the last byte of a disk. */
export function fillUp(folder: string): void {
  const filler = openSync(join(folder, 'filler'), 'a');
  try {
    for (;;) writeSync(filler, Buffer.alloc(4096));
  } catch (error) {
    if (errnoOf(error) !== 'ENOSPC') throw error;
  } finally {
    closeSync(filler);
  }
}

export function program(name: string): string {
  return fileURLToPath(new URL(`../programs/${name}`, import.meta.url));
}

export interface MakeOptions {
  readonly limits?: Partial<Limits>;
  readonly folder?: string;
  /** False: as on a machine where processes get no cgroup of their own. */
  readonly groups?: boolean;
  /** Its path. */
  readonly bubblewrap?: string | undefined;
}

export async function inProcess(options: MakeOptions & Partial<HostOptions> = {}): Promise<Host> {
  const folder = options.folder ?? temporaryFolder();
  const surroundings = { env: process.env, cwd: tmpdir(), home: tmpdir() };
  const host = await Host.open({ surroundings, ...options, folder });
  onCleanup(() => closeHost(host, options.clock));
  return host;
}

/** A clock that the test moves goes on by itself here: what ends only after a time would not end. */
async function closeHost(host: Host, clock: HostOptions['clock']): Promise<void> {
  const closing = host.close();
  if (clock instanceof FakeClock) {
    const isClosed = closing.then(() => true);
    while (!(await Promise.race([isClosed, nextTurn(false)]))) clock.advance(10);
  }
  await closing;
}

export async function overKeeper(options: MakeOptions = {}): Promise<KeeperLink> {
  const home = options.folder ?? temporaryFolder();
  const keeperArgs = [
    '--idle-ms',
    '60000',
    ...(options.limits ? ['--limits', JSON.stringify(options.limits)] : []),
    ...(options.groups === false ? ['--no-cgroups'] : []),
    ...(options.bubblewrap === undefined ? [] : ['--bubblewrap', options.bubblewrap]),
  ];
  const link = await connectKeeper({ home, env: process.env, keeperArgs });
  onCleanup(async () => {
    await stopKeeper(home);
    await link.close();
  });
  return link;
}

/** Ends the keeper of a home, if there is one, and everything it holds. */
export async function stopKeeper(home: string): Promise<void> {
  let link: KeeperLink;
  try {
    link = await connectKeeper({ home, env: {}, startIfMissing: false });
  } catch {
    return;
  }
  await link.stop();
}

/**
 * Starts a process that ends and leaves somebody who has made a session and emptied the environment: nobody knows whose it is.
 * The answer is its pid and that of a child of it.
 */
export async function leaveStray(host: HostApi, prefix = ['env', '-i']): Promise<number[]> {
  const stray = `sleep 1000 3>&- & echo $$ $! ready >&3; exec 3>&-; wait`;
  const script = `${prefix.join(' ')} setsid sh -c '${stray}' 3>&1 >/dev/null 2>&1 </dev/null & read line`;
  const id = await startProcess(host, { command: script, stdin: 'pipe' });
  const { line = '' } = await waitFor(host, id, { kind: 'text', text: 'ready' });
  await host.write(OWNER, { id, data: Buffer.from('\n') });
  await waitFor(host, id, { kind: 'settled' });
  const pids = line.split(' ').slice(0, 2).map(Number);
  // Whatever happens: the number of one that has ended may be another's.
  for (const pid of pids)
    onCleanup(() => {
      if (commandOf(pid).includes('sleep 1000')) spawnSync('kill', ['-KILL', String(pid)]);
    });
  return pids;
}

type Make = (options?: MakeOptions) => Promise<HostApi>;

/** One suite over every implementation of HostApi. */
export function describeHosts(suite: (make: Make) => void): void {
  describe('in process', () => {
    suite(inProcess);
  });
  describe('over a keeper', () => {
    suite(overKeeper);
  });
  describe.skipIf(!hasNats)(`over a fleet${LEFT_OUT}`, () => {
    suite(async (options) => (await import('./fleet.ts')).overFleet(options));
  });
}

export async function startProcess(api: HostApi, spec: StartSpec, owner = OWNER): Promise<string> {
  return (await api.start(owner, spec)).process.id;
}

/** The first condition that is met (or can no longer be). The test's own time limit is the only one. */
export async function waitFor(api: HostApi, id: string, ...conditions: Condition[]): Promise<Met> {
  const { met } = await api.wait(OWNER, { waits: [{ id, for: conditions }] });
  const [first] = met;
  if (!first) throw new Error('the wait answered nothing');
  return first;
}

export async function pages(
  api: HostApi,
  id: string,
  maxBytes = 65_536,
): Promise<{ events: ProcessEvent[]; pages: Page[] }> {
  const events: ProcessEvent[] = [];
  const all: Page[] = [];
  for (let after = 0, offset = 0; ;) {
    const page = await api.read(OWNER, { id, after, offset, maxBytes });
    all.push(page);
    events.push(...decodeRecords(page.records));
    if (page.nextAfter === after) return { events, pages: all };
    after = page.nextAfter;
    offset = page.nextOffset;
  }
}

export async function outputText(api: HostApi, id: string): Promise<string> {
  const { events } = await pages(api, id);
  return Buffer.concat(
    events.flatMap((event) => (event.kind === 'output' ? [event.data] : [])),
  ).toString();
}

/** Until all that was printed ends so: a wait sees lines, and not whether a terminal has ended them. */
export async function untilPrinted(api: HostApi, id: string, end: string): Promise<void> {
  while (!(await outputText(api, id)).endsWith(end)) await nextTurn();
}

export async function failure(
  promise: Promise<unknown>,
): Promise<{ code: string; message: string }> {
  try {
    await promise;
  } catch (error) {
    return error as { code: string; message: string };
  }
  throw new Error('it succeeded');
}
