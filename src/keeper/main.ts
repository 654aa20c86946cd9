// The keeper's main: locks the home, opens the host, listens, and writes "ready" to descriptor 3. It outlives the program
// that started it, and exits when no process is left.

import { closeSync, rmSync, writeSync } from 'node:fs';
import { homedir } from 'node:os';
import { parseArgs } from 'node:util';
import { systemClock } from '../base/clock.ts';
import { withoutLauncher } from '../base/inherited-environment.ts';
import { VERSION } from '../base/version.ts';
import { Host } from '../host/host.ts';
import { loadPosix } from '../system/posix.ts';
import { goAhead } from '../system/priority.ts';
import { readEntry } from '../system/proc-table.ts';
import { defaultLimits, type Limits } from '../protocol/limits.ts';
import type { CloseReport } from '../protocol/host-api.ts';
import { openHome, type Home } from './home.ts';
import { takeLock, TAKEN, type HomeLock, type KeeperNote } from './home-lock.ts';
import { Keeper } from './keeper.ts';
import { OwnServer } from './own-server.ts';
import { StateLog } from './state-log.ts';

/**
 * Neither "node" nor "holdfast" is in it: an agent's `pkill node`, `killall node` or `pkill -f holdfast` is meant for
 * programs of its own.
 */
const TITLE = 'hf-keeper';
/** keeper.log */
const LOG_FD = 2;
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
  process.title = TITLE;
  const home = openHome(values.home);
  const lock = takeLock<KeeperNote>(home.lock);
  if (!lock) {
    answerStarter(TAKEN);
    process.exitCode = 1;
    return;
  }
  const { pid } = process;
  const startTicks = readEntry(pid)?.startTicks ?? 0;
  const note = (closed?: CloseReport): void =>
    attempt('the lock', () => lock.note({ pid, startTicks, ...(closed && { closed }) }));
  note();
  const states = new StateLog({ path: home.stateLog, clock: systemClock, report });
  states.note({ event: 'start', reason: `pid ${pid}, version ${VERSION}` });
  const host = await Host.open({
    folder: home.folder,
    surroundings: { env: withoutLauncher(process.env), cwd: homedir(), home: homedir() },
    version: VERSION,
    limits: parseLimits(values.limits),
    report,
    transition: (transition) => states.note(transition),
    adopts: true,
    children: 'posix',
  });
  states.note({ event: 'start', reason: `fast paths: ${host.fastPaths.join(', ')}` });
  const idleMs = Number(values['idle-ms'] ?? DEFAULT_IDLE_MS);
  const keeper = new Keeper({
    host,
    server: new OwnServer(host, home.folder, process.env),
    clock: systemClock,
    version: VERSION,
    idleMs,
    stopping: (reason) => states.note({ event: 'stop', reason }),
    released: (closed) => {
      for (const problem of closed.problems) report(`closing: ${problem}`);
      note(closed);
      states.note({ event: 'stop', reason: closeReason(closed) });
      states.close();
      release(home, lock);
    },
    left: () => loadPosix()?.exit(0),
  });
  // A killed keeper may have left it; we hold the lock, so no keeper listens on it.
  rmSync(home.socket, { force: true });
  await keeper.listen(home.socket);
  handleSignals(keeper);
  goAhead({ batch: true });
  loadPosix()?.forbidTracing();
  answerStarter('ready');
}

function closeReason({ ended, strays = 0, survivors, problems }: CloseReport): string {
  const alive = survivors.map(({ pid }) => pid).join(' ') || 'none';
  return `${ended} ended${strays === 0 ? '' : `, ${strays} orphans ended`}, survivors: ${alive}, not done: ${problems.length}`;
}

/** The socket first: once the lock is free, the next keeper may create its own there. */
function release(home: Home, lock: HomeLock<KeeperNote>): void {
  attempt('the socket', () => rmSync(home.socket, { force: true }));
  attempt('the lock', () => lock.release());
}

/** Reports an error and continues. */
function attempt(what: string, act: () => void): void {
  try {
    act();
  } catch (error) {
    report(`${what}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function handleSignals(keeper: Keeper): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.once(signal, () => void keeper.stop(signal));
  process.on('SIGHUP', () => undefined);
  // Without a handler SIGUSR1 opens Node's debugger to every local user.
  process.on('SIGUSR1', () => undefined);
  // The running processes are worth more than a clean exit: report the error and continue.
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

/** Not `process.stderr`, which ends the program on a full disk. */
function report(message: string): void {
  try {
    writeSync(LOG_FD, `${new Date().toISOString()} ${message}\n`);
  } catch {
    // The disk is full, or the log is gone.
  }
}

/** To the program that started this keeper, if that passed descriptor 3. */
function answerStarter(message: string): void {
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
  answerStarter(reason);
  process.exit(1);
});
