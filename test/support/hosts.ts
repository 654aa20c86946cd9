// Hosts for tests: the same suite over a host in this program and over a keeper of its own. Whatever a test starts is
// ended, and its folder removed, when the test is over.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe } from 'vitest';
import { Host, type HostOptions } from '../../src/host/host.ts';
import { connectKeeper } from '../../src/keeper/connect.ts';
import type { KeeperLink } from '../../src/keeper/link.ts';
import type { HostApi, Met, Page } from '../../src/protocol/host-api.ts';
import type { Limits } from '../../src/protocol/limits.ts';
import type { Condition, StartSpec } from '../../src/protocol/operations.ts';
import type { ProcessEvent } from '../../src/protocol/event.ts';
import { decodeRecords } from '../../src/protocol/record.ts';

export const OWNER = 'chat-1';
const cleanups: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

export function onCleanup(cleanup: () => Promise<void> | void): void {
  cleanups.push(cleanup);
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-test-'));
  onCleanup(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function program(name: string): string {
  return fileURLToPath(new URL(`../programs/${name}`, import.meta.url));
}

export interface MakeOptions {
  readonly limits?: Partial<Limits>;
  readonly folder?: string;
}

export async function inProcess(options: MakeOptions & Partial<HostOptions> = {}): Promise<Host> {
  const folder = options.folder ?? temporaryFolder();
  const surroundings = { env: process.env, cwd: tmpdir(), home: tmpdir() };
  const host = await Host.open({ surroundings, ...options, folder });
  onCleanup(() => host.close());
  return host;
}

export async function overKeeper(options: MakeOptions = {}): Promise<KeeperLink> {
  const home = options.folder ?? temporaryFolder();
  const keeperArgs = [
    '--idle-ms',
    '60000',
    ...(options.limits ? ['--limits', JSON.stringify(options.limits)] : []),
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

type Make = (options?: MakeOptions) => Promise<HostApi>;

/** One suite over every implementation of HostApi. */
export function describeHosts(suite: (make: Make) => void): void {
  describe('in process', () => {
    suite(inProcess);
  });
  describe('over a keeper', () => {
    suite(overKeeper);
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
