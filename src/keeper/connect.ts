// Finding the keeper of a home, or starting it. However many try at once, one keeper results.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, ftruncateSync, fstatSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { builtFile } from '../base/built-file.ts';
import { errnoOf } from '../base/disk.ts';
import { KEEPER_FLAGS } from '../base/engine-flags.ts';
import { HoldfastError } from '../protocol/errors.ts';
import { MARKER_NAME } from '../host/environment.ts';
import { loadPosix, posixProblem } from '../host/posix.ts';
import { openHome, openPrivate, type Home } from './home.ts';
import { openLink, type KeeperLink } from './link.ts';

export interface ConnectOptions {
  readonly home: string;
  /** What the keeper, and through it every process, inherits if it has to be started. */
  readonly env: NodeJS.ProcessEnv;
  /** Answer `keeper_unreachable` instead of starting one. */
  readonly startIfMissing?: boolean;
  /** Passed to a keeper that has to be started. */
  readonly keeperArgs?: readonly string[];
}

const MAX_LOG_BYTES = 1024 * 1024;
/** After this long without a sign from whoever is starting the keeper, it is looked at again. */
const STARTER_MAY_DIE_MS = 200;

export async function connectKeeper(options: ConnectOptions): Promise<KeeperLink> {
  const home = openHome(options.home);
  const there = await tryLink(home);
  if (there) return there;
  if (options.startIfMissing === false) {
    throw new HoldfastError('keeper_unreachable', `No keeper is running for ${home.folder}.`, {
      home: home.folder,
    });
  }
  const posix = loadPosix();
  if (!posix) {
    const problem = posixProblem() ?? 'unknown';
    throw new HoldfastError(
      'unsupported',
      `A keeper needs system calls that cannot be made here: ${problem}.`,
    );
  }
  for (;;) {
    const lock = openPrivate(home.startLock, constants.O_RDWR);
    try {
      // Somebody else may have started it since the first look.
      if (posix.tryLock(lock)) return (await tryLink(home)) ?? (await startAndLink(home, options));
    } finally {
      closeSync(lock);
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

async function tryLink(home: Home): Promise<KeeperLink | undefined> {
  try {
    return await openLink(home.socket);
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
    [...KEEPER_FLAGS, main, '--home', home.folder, ...(options.keeperArgs ?? [])],
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
      else failed(said.trim() || `see ${home.log}`);
    });
  });
}
