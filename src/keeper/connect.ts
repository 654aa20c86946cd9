// Connects to the keeper of a home, or starts it. Concurrent callers start only one keeper.

import { once } from 'node:events';
import { closeSync, constants, watch } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { CancelSignal } from '../base/cancel-signal.ts';
import { builtFile } from '../base/workers/built-file.ts';
import { errnoOf } from '../base/disk.ts';
import { ENGINE_FLAGS } from '../base/engine-flags.ts';
import { HoldfastError } from '../protocol/errors.ts';
import { MARKER_NAME } from '../host/start/environment.ts';
import { loadPosix, posixProblem } from '../system/posix.ts';
import { openHome, openPrivate, type Home } from './home.ts';
import { lockHolder, readNote, TAKEN, type KeeperNote } from './home-lock.ts';
import { openLink, type KeeperLink } from './link.ts';
import { tryStartLock } from './start-lock.ts';

/** Arguments for a keeper that must be started, or where to ask for them then. */
export type KeeperArguments = readonly string[] | (() => Promise<readonly string[]>);

export interface ConnectOptions {
  readonly home: string;
  /** The environment of a keeper that must be started, and so of every process. */
  readonly env: NodeJS.ProcessEnv;
  /** False: throw `keeper_unreachable` instead of starting a keeper. */
  readonly startIfMissing?: boolean;
  readonly keeperArgs?: KeeperArguments;
  /** After an abort no keeper is started; a start in progress is finished. */
  readonly signal?: CancelSignal | undefined;
}

/** How long to wait for another program that starts the keeper before trying again: it may have died. */
const STARTER_MAY_DIE_MS = 200;
/** By then a keeper that holds its lock listens, even on a busy machine. */
const STARTING_MS = 2500;

export async function connectKeeper(options: ConnectOptions): Promise<KeeperLink> {
  const home = openHome(options.home);
  const there = await tryLink(home);
  if (there) return there;
  if (options.startIfMissing === false) return linkWithHolder(home);
  if (!loadPosix()) {
    const problem = posixProblem() ?? 'unknown';
    throw new HoldfastError(
      'unsupported',
      `A keeper needs system calls that cannot be made here: ${problem}.`,
    );
  }
  let until: number | undefined;
  for (;;) {
    if (options.signal?.aborted)
      throw new HoldfastError('aborted', 'The program was stopped before it started a keeper.');
    const release = tryStartLock(home);
    try {
      // Another program may have started it since the first try.
      const link = release && ((await tryLink(home)) ?? (await startAndLink(home, options)));
      if (link) return link;
      // A keeper whose starter was killed meanwhile is still starting, or one is about to release the lock.
      if (release) until ??= performance.now() + STARTING_MS;
      if (until !== undefined && performance.now() > until) throw unreachable(home);
    } finally {
      release?.();
    }
    await waitForSocket(home);
    const started = await tryLink(home);
    if (started) return started;
  }
}

/** A keeper that holds the lock and has no socket yet is starting, or is about to release the lock: waits for either. */
async function linkWithHolder(home: Home): Promise<KeeperLink> {
  const until = performance.now() + STARTING_MS;
  while (lockHolder(home.lock) !== undefined && performance.now() < until) {
    await waitForSocket(home);
    const started = await tryLink(home);
    if (started) return started;
  }
  throw unreachable(home);
}

/** Another program is starting the keeper: waits for a change of the folder, or until that program may have died. */
async function waitForSocket(home: Home): Promise<void> {
  const signal = AbortSignal.timeout(STARTER_MAY_DIE_MS);
  const watcher = watch(dirname(home.socket), { signal });
  watcher.on('error', () => undefined);
  await Promise.race([once(watcher, 'change', { signal }), once(watcher, 'close')]).catch(
    () => undefined,
  );
  watcher.close();
}

/** A keeper that holds its lock and accepts no connection is starting, ending, or out of descriptors. */
function unreachable(home: Home): HoldfastError {
  const holder = lockHolder<KeeperNote>(home.lock);
  if (holder === undefined) {
    return new HoldfastError('keeper_unreachable', `No keeper is running for ${home.folder}.`, {
      home: home.folder,
    });
  }
  const who = holder === 'unknown' ? '' : ` (pid ${holder.pid})`;
  const problem = `The keeper of ${home.folder}${who} takes no connections: it is starting, ending, or out of descriptors.`;
  return new HoldfastError(
    'not_answering',
    problem,
    holder === 'unknown' ? {} : { pid: holder.pid },
  );
}

async function tryLink(home: Home): Promise<KeeperLink | undefined> {
  try {
    return await openLink(home.socket, readNote<KeeperNote>(home.lock)?.pid);
  } catch (error) {
    const errno = errnoOf(error);
    // keeper_lost and ECONNRESET: the keeper was just ending; the kernel resets connections that it had not accepted.
    if (
      errno === 'ENOENT' ||
      errno === 'ECONNREFUSED' ||
      errno === 'ECONNRESET' ||
      (error instanceof HoldfastError && error.code === 'keeper_lost')
    )
      return undefined;
    if (error instanceof HoldfastError) throw error;
    throw new HoldfastError(
      'keeper_unreachable',
      `The keeper of ${home.folder} cannot be reached: ${errno}.`,
    );
  }
}

/** Undefined if another keeper has the lock. */
async function startAndLink(home: Home, options: ConnectOptions): Promise<KeeperLink | undefined> {
  if (!(await startKeeper(home, options))) return undefined;
  const link = await tryLink(home);
  if (link) return link;
  throw new HoldfastError(
    'keeper_unreachable',
    `A keeper started for ${home.folder} but left again; see ${home.log}.`,
  );
}

/** Starts the keeper in its own session and waits until it listens or reports a problem. False if another one has the lock. */
async function startKeeper(home: Home, options: ConnectOptions): Promise<boolean> {
  // Most callers find a running keeper.
  const { spawn } = await import('node:child_process');
  const { keeperArgs = [] } = options;
  const args = typeof keeperArgs === 'function' ? await keeperArgs() : keeperArgs;
  const log = openPrivate(home.log, constants.O_RDWR | constants.O_APPEND);
  const main = fileURLToPath(builtFile(import.meta.url, './main.js'));
  const child = spawn(process.execPath, [...ENGINE_FLAGS, main, '--home', home.folder, ...args], {
    detached: true,
    cwd: '/',
    // Without the marker: a keeper started by one of our processes must not be taken for its descendant.
    env: { ...options.env, [MARKER_NAME]: undefined },
    stdio: ['ignore', log, log, 'pipe'],
  });
  closeSync(log);
  return new Promise((resolve, reject) => {
    const failed = (reason: string): void => {
      reject(
        new HoldfastError(
          'keeper_unreachable',
          `The keeper for ${home.folder} did not start: ${reason}.`,
        ),
      );
    };
    child.once('error', (error) => failed(error.message));
    let said = '';
    const ready = child.stdio[3] as NodeJS.ReadableStream;
    ready.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    ready.once('close', () => {
      child.unref();
      if (said.startsWith('ready')) resolve(true);
      else if (said.startsWith(TAKEN)) resolve(false);
      else failed(said.trim() || `see ${home.log}`);
    });
  });
}
