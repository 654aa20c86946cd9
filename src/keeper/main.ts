// The keeper's main: takes the home, opens the host, listens, and says that it is ready on descriptor 3. It outlives
// whoever started it and leaves by itself when there is nothing to keep.

import { closeSync, constants, rmSync, writeSync } from 'node:fs';
import { homedir } from 'node:os';
import { parseArgs } from 'node:util';
import { systemClock } from '../base/clock.ts';
import { VERSION } from '../base/version.ts';
import { Host } from '../host/host.ts';
import { loadPosix, posixProblem } from '../host/posix.ts';
import { defaultLimits, type Limits } from '../protocol/limits.ts';
import { openHome, openPrivate } from './home.ts';
import { Keeper } from './keeper.ts';

const READY_FD = 3;
const DEFAULT_IDLE_MS = 15 * 60_000;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      home: { type: 'string' },
      'idle-ms': { type: 'string' },
      limits: { type: 'string' },
    },
  });
  if (values.home === undefined) throw new Error('--home is missing');
  const home = openHome(values.home);
  const unlock = takeLock(home.lock);
  if (!unlock) {
    tell('another keeper has this home');
    process.exitCode = 1;
    return;
  }
  const host = await Host.open({
    folder: home.folder,
    surroundings: { env: process.env, cwd: homedir(), home: homedir() },
    version: VERSION,
    limits: parseLimits(values.limits),
    report,
    adopts: true,
    children: 'posix',
  });
  // The socket first: once the lock is free, the next keeper may already have put its own there.
  const released = (): void => {
    rmSync(home.socket, { force: true });
    unlock();
  };
  const idleMs = Number(values['idle-ms'] ?? DEFAULT_IDLE_MS);
  const keeper = new Keeper({
    host,
    clock: systemClock,
    version: VERSION,
    idleMs,
    released,
    left: () => process.exit(0),
  });
  // Left behind by a keeper that was killed; the lock says that nobody listens on it.
  rmSync(home.socket, { force: true });
  await keeper.listen(home.socket);
  handleSignals(keeper);
  tell('ready');
}

/** Undefined when another keeper has it. The lock lives as long as its descriptor, at most as long as this process. */
function takeLock(path: string): (() => void) | undefined {
  const posix = loadPosix();
  if (!posix) throw new Error(`system calls cannot be made here: ${posixProblem() ?? 'unknown'}`);
  const lock = openPrivate(path, constants.O_RDWR);
  return posix.tryLock(lock) ? () => closeSync(lock) : undefined;
}

function handleSignals(keeper: Keeper): void {
  const stop = (): void => void keeper.stop();
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  process.on('SIGHUP', () => undefined);
  // Without a handler SIGUSR1 opens Node's debugger to every local user.
  process.on('SIGUSR1', () => undefined);
  // What it holds is worth more than a clean end: say it and go on.
  process.on('uncaughtException', (error) => report(`unexpected: ${error.stack ?? error.message}`));
  process.on('unhandledRejection', (reason) =>
    report(`unexpected: ${reason instanceof Error ? reason.stack : String(reason)}`),
  );
}

function parseLimits(text: string | undefined): Partial<Limits> {
  if (text === undefined) return {};
  const given = JSON.parse(text) as Record<string, unknown>;
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(defaultLimits, name)) throw new Error(`there is no limit "${name}"`);
    if (typeof value !== 'number' || !(value >= 0))
      throw new Error(`the limit "${name}" must be a number`);
  }
  return given;
}

function report(message: string): void {
  process.stderr.write(`${new Date().toISOString()} ${message}\n`);
}

/** To whoever started this keeper, if it was started that way. */
function tell(message: string): void {
  try {
    writeSync(READY_FD, `${message}\n`);
    closeSync(READY_FD);
  } catch {
    report(message);
  }
}

main().catch((error: unknown) => {
  const reason = error instanceof Error ? error.message : String(error);
  report(reason);
  tell(reason);
  process.exit(1);
});
