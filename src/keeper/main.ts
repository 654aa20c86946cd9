// The keeper's main: locks the home, opens the host, listens, and writes "ready" to descriptor 3. It outlives the program
// that started it, and exits when no process is left. In the foreground (`holdfast up`) it has a server, and stays.

import { closeSync, existsSync, rmSync, writeSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../base/clock.ts';
import { withoutLauncher } from '../base/inherited-environment.ts';
import { VERSION } from '../base/version.ts';
import { KEEPER_TITLE } from '../host/descendants/confined-elsewhere.ts';
import { Host } from '../host/host.ts';
import { loadPosix } from '../system/posix.ts';
import { readEntry } from '../system/proc-table.ts';
import { toErrorShape } from '../protocol/errors.ts';
import { defaultLimits, type Limits } from '../protocol/limits.ts';
import { parseLogSettings, type LogSettings } from '../protocol/observe/log-settings.ts';
import type { CloseReport } from '../protocol/host-api.ts';
import { openHome, type Home } from './home.ts';
import { serverDied, takeLock, TAKEN, type HomeLock, type KeeperNote } from './home-lock.ts';
import { Keeper } from './keeper.ts';
import { OwnServer } from './own-server.ts';
import { Log, logLine, problemEntry } from './log.ts';

/** keeper.log; in the foreground whatever its starter has. */
const STDERR_FD = 2;
const STDOUT_FD = 1;
const READY_FD = 3;
const DEFAULT_IDLE_MS = 15 * 60_000;

type Report = (problem: string) => void;

interface KeeperArguments {
  readonly home: Home;
  readonly idleMs: number;
  readonly limits: Partial<Limits>;
  readonly groups: boolean;
  readonly bubblewrap: string | undefined;
  readonly graceMs: number | undefined;
  /** Set in the foreground: the options of its server. */
  readonly serve: readonly string[] | undefined;
  readonly logged: LogSettings;
}

function readArguments(): KeeperArguments {
  const { values } = parseArgs({
    options: {
      home: { type: 'string' },
      'idle-ms': { type: 'string' },
      limits: { type: 'string' },
      foreground: { type: 'string' },
      'grace-ms': { type: 'string' },
      log: { type: 'string' },
      'log-format': { type: 'string' },
      'no-cgroups': { type: 'boolean' },
      bubblewrap: { type: 'string' },
    },
  });
  const { home, foreground, 'idle-ms': idle, 'grace-ms': grace } = values;
  if (home === undefined) throw new Error('--home is missing');
  const inFront = foreground !== undefined;
  return {
    home: openHome(home),
    idleMs: inFront ? Infinity : Number(idle ?? DEFAULT_IDLE_MS),
    limits: parseLimits(values.limits),
    groups: values['no-cgroups'] !== true,
    bubblewrap: values.bubblewrap,
    graceMs: grace === undefined ? undefined : Number(grace),
    serve: inFront ? (JSON.parse(foreground) as string[]) : undefined,
    logged: parseLogSettings(values.log, values['log-format']),
  };
}

/** Where problems are reported: in the log once there is one, and where the starter sees it. */
class Problems {
  private log: Log | undefined;
  private inFront = false;
  private format: LogSettings['format'] = 'text';

  open({ home, logged, serve }: KeeperArguments): Log {
    const inFront = serve !== undefined;
    // What Node itself prints, such as why it was out of memory, goes to the file that is the log now.
    const opened = (fd: number): void => {
      if (!inFront) for (const stream of [STDOUT_FD, STDERR_FD]) loadPosix()?.redirect(fd, stream);
    };
    const { report } = this;
    const part = 'keeper';
    this.format = logged.format;
    this.log = new Log({ ...logged, path: home.log, part, clock: systemClock, report, opened });
    this.inFront = inFront;
    return this.log;
  }

  async close(): Promise<void> {
    const { log } = this;
    this.log = undefined;
    await log?.close();
  }

  readonly report = (problem: string): void => {
    const entry = problemEntry(problem);
    this.log?.note('warn', entry);
    if (!this.log || this.inFront) say(STDERR_FD, logLine('keeper', this.format, 'warn', entry));
  };
}

async function main(problems: Problems): Promise<void> {
  const { report } = problems;
  const given = readArguments();
  const { home, serve } = given;
  process.title = KEEPER_TITLE;
  const { lock, earlierPid } = lockAfter(home.lock);
  if (!lock) {
    if (serve) report(`A keeper is already running for ${home.folder}.`);
    else answerStarter(TAKEN, report);
    process.exitCode = 1;
    return;
  }
  const { keeper, server, setExitCode } = await open(given, { lock, earlierPid, problems });
  // A killed keeper may have left it; we hold the lock, so no keeper listens on it.
  rmSync(home.socket, { force: true });
  await keeper.listen(home.socket);
  handleSignals(keeper, given.graceMs, report);
  loadPosix()?.forbidTracing();
  if (!serve) answerStarter('ready', report);
  else if (!(await serveInFront(server, serve, report))) {
    setExitCode(1);
    await keeper.stop('its server cannot start');
  }
}

interface Taken {
  readonly lock: HomeLock<KeeperNote>;
  /** Of the keeper that had the home before. */
  readonly earlierPid: number | undefined;
  readonly problems: Problems;
}

async function open(given: KeeperArguments, { lock, earlierPid, problems }: Taken) {
  const { home, idleMs, limits, serve, groups, bubblewrap } = given;
  const { report } = problems;
  const { pid } = process;
  const startTicks = readEntry(pid)?.startTicks ?? 0;
  const note = (closed?: CloseReport): void =>
    attempt('the lock', report, () => lock.note({ pid, startTicks, ...(closed && { closed }) }));
  note();
  const log = problems.open(given);
  log.note('info', { event: 'start', message: `pid ${pid}, version ${VERSION}` });
  const host = await Host.open({
    folder: home.folder,
    surroundings: { env: withoutLauncher(process.env), cwd: homedir(), home: homedir() },
    version: VERSION,
    limits,
    report,
    transition: ({ event, process, reason: message }) =>
      log.note(event === 'degrade' ? 'warn' : 'info', { event, process, message }),
    adopts: true,
    children: 'posix',
    earlierPid,
    hidden: [home.folder, dirname(home.socket)],
    groups,
    bubblewrap,
  });
  log.note('info', { event: 'start', message: `fast paths: ${host.fastPaths.join(', ')}` });
  const server = new OwnServer({
    start: (plan) => host.programs.startHelper(plan),
    home: home.folder,
    env: process.env,
    clock: systemClock,
    report: serve ? report : (message) => log.note('info', { event: 'server', message }),
    isMember: () => existsSync(home.membership),
    hasDied: () => serverDied(home.serverLock),
  });
  let exitCode = 0;
  const keeper = new Keeper({
    host,
    server,
    clock: systemClock,
    version: VERSION,
    idleMs,
    stopping: (message) => log.note('info', { event: 'stop', message }),
    released: async (closed) => {
      for (const problem of closed.problems) report(`closing: ${problem}`);
      note(closed);
      if (closed.survivors.length + closed.problems.length > 0) exitCode = 1;
      log.note('info', { event: 'stop', message: closeReason(closed) });
      await problems.close();
      release(home, lock, report);
    },
    left: () => loadPosix()?.exit(exitCode),
  });
  return { keeper, server, setExitCode: (code: number) => (exitCode = code) };
}

/** False: a server that cannot start, such as for a port in use, ends the keeper: its user has just typed the command. */
async function serveInFront(
  server: OwnServer,
  args: readonly string[],
  report: Report,
): Promise<boolean> {
  try {
    const { url, socket } = await server.supervise(args);
    const where = [url, socket].filter((each) => typeof each === 'string').join(' and ');
    say(STDOUT_FD, `Holdfast serves ${where} (keeper ${process.pid}). SIGTERM ends everything.\n`);
    return true;
  } catch (error) {
    report(toErrorShape(error).message);
    return false;
  }
}

/** The lock of the home, and which keeper had it before. */
function lockAfter(path: string): {
  lock: HomeLock<KeeperNote> | undefined;
  earlierPid: number | undefined;
} {
  let earlierPid: number | undefined;
  const lock = takeLock<KeeperNote>(path, ({ pid }) => {
    earlierPid = pid;
    return undefined;
  });
  return { lock, earlierPid };
}

function closeReason({ ended, strays = 0, survivors, problems }: CloseReport): string {
  const alive = survivors.map(({ pid }) => pid).join(' ') || 'none';
  return `${ended} ended${strays === 0 ? '' : `, ${strays} orphans ended`}, survivors: ${alive}, not done: ${problems.length}`;
}

/** The socket first: once the lock is free, the next keeper may create its own there. */
function release(home: Home, lock: HomeLock<KeeperNote>, report: Report): void {
  attempt('the socket', report, () => rmSync(home.socket, { force: true }));
  attempt('the lock', report, () => lock.release());
}

/** Reports an error and continues. */
function attempt(what: string, report: Report, act: () => void): void {
  try {
    act();
  } catch (error) {
    report(`${what}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function handleSignals(keeper: Keeper, graceMs: number | undefined, report: Report): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => void keeper.stop(signal, graceMs));
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
function say(fd: number, line: string): void {
  try {
    writeSync(fd, line);
  } catch {
    // The disk is full, or the log is gone.
  }
}

/** To the program that started this keeper, if that passed descriptor 3. */
function answerStarter(message: string, report: Report): void {
  try {
    writeSync(READY_FD, `${message}\n`);
    closeSync(READY_FD);
  } catch {
    report(message);
  }
}

const problems = new Problems();
main(problems).catch((error: unknown) => {
  const reason = error instanceof Error ? error.message : String(error);
  problems.report(reason);
  answerStarter(reason, problems.report);
  process.exit(1);
});
