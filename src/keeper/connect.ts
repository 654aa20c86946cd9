// Finding the keeper of a home, or starting it. However many try at once, one keeper results.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, ftruncateSync, fstatSync, watch } from 'node:fs';
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

export interface ConnectOptions {
  readonly home: string;
  /** What the keeper, and through it every process, inherits if it has to be started. */
  readonly env: NodeJS.ProcessEnv;
  /** Answer `keeper_unreachable` instead of starting one. */
  readonly startIfMissing?: boolean;
  /** Passed to a keeper that has to be started. */
  readonly keeperArgs?: readonly string[];
  /** No start is begun once this is aborted; one that is under way is finished. */
  readonly signal?: CancelSignal | undefined;
}

const MAX_LOG_BYTES = 1024 * 1024;
/** After this long without a sign from whoever is starting the keeper, it is looked at again. */
const STARTER_MAY_DIE_MS = 200;

export async function connectKeeper(options: ConnectOptions): Promise<KeeperLink> {
  const home = openHome(options.home);
  const there = await tryLink(home);
  if (there) return there;
  if (options.startIfMissing === false) throw unreachable(home);
  if (!loadPosix()) {
    const problem = posixProblem() ?? 'unknown';
    throw new HoldfastError(
      'unsupported',
      `A keeper needs system calls that cannot be made here: ${problem}.`,
    );
  }
  for (;;) {
    if (options.signal?.aborted)
      throw new HoldfastError('aborted', 'Told to end before a keeper was started.');
    const release = tryStartLock(home);
    try {
      // Somebody else may have started it since the first look.
      if (release) return (await tryLink(home)) ?? (await startAndLink(home, options));
    } finally {
      release?.();
    }
    await somethingHappens(home);
    const started = await tryLink(home);
    if (started) return started;
  }
}

/** Another program is starting the keeper: its socket appears in the folder; or that program dies, which nobody tells. */
async function somethingHappens(home: Home): Promise<void> {
  const signal = AbortSignal.timeout(STARTER_MAY_DIE_MS);
  const watcher = watch(dirname(home.socket), { signal });
  watcher.on('error', () => undefined);
  await Promise.race([once(watcher, 'change', { signal }), once(watcher, 'close')]).catch(
    () => undefined,
  );
  watcher.close();
}

/** A keeper that takes no connections has its lock nevertheless: it is just coming or leaving, or has no descriptor left. */
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
    // keeper_lost: it was just leaving.
    if (
      errno === 'ENOENT' ||
      errno === 'ECONNREFUSED' ||
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

async function startAndLink(home: Home, options: ConnectOptions): Promise<KeeperLink> {
  await startKeeper(home, options);
  const link = await tryLink(home);
  if (link) return link;
  throw new HoldfastError(
    'keeper_unreachable',
    `A keeper started for ${home.folder} but left again; see ${home.log}.`,
  );
}

/** Starts the keeper in a session of its own and waits until it listens or says why it cannot. */
function startKeeper(home: Home, options: ConnectOptions): Promise<void> {
  const log = openPrivate(home.log, constants.O_RDWR | constants.O_APPEND);
  if (fstatSync(log).size > MAX_LOG_BYTES) ftruncateSync(log, 0);
  const main = fileURLToPath(builtFile(import.meta.url, './main.js'));
  const child = spawn(
    process.execPath,
    [...ENGINE_FLAGS, main, '--home', home.folder, ...(options.keeperArgs ?? [])],
    {
      detached: true,
      cwd: '/',
      // A keeper started from inside a process it would then hold must not look like its descendant.
      env: { ...options.env, [MARKER_NAME]: undefined },
      stdio: ['ignore', log, log, 'pipe'],
    },
  );
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
      if (said.startsWith('ready')) resolve();
      else if (said.startsWith(TAKEN)) reject(unreachable(home));
      else failed(said.trim() || `see ${home.log}`);
    });
  });
}
