// Ends the keeper: by a request, or by a signal when it takes no connections or does not answer.

import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { HoldfastError } from '../../protocol/errors.ts';
import type { CloseReport } from '../../protocol/host-api.ts';
import type { KeeperNote } from '../../keeper/home-lock.ts';
import type { KeeperLink } from '../../keeper/link.ts';
import { isError, type Caller } from '../caller.ts';
import { endsWithin, signalHolder } from './process.ts';

export interface EndedKeeper {
  readonly pid: number;
  /** Undefined when it exited without a report. */
  readonly report: CloseReport | undefined;
}

/** The keeper's grace period, its SIGKILL, and a margin for a busy machine. */
const LEAVE_MS = 13_000;
/** A keeper that takes connections does so within this. */
const REACH_MS = 3000;
/** How long a keeper that has reported may take to exit. */
const EXIT_MS = 5000;

/** Undefined when there is none. Waits for one that is just starting, and keeps others from starting meanwhile. */
export async function endKeeper(
  caller: Caller,
  graceMs: number | undefined,
): Promise<EndedKeeper | undefined> {
  const { home } = caller;
  if (!existsSync(home)) return undefined;
  const { openHome } = await import('../../keeper/home.ts');
  const { withoutStarts } = await import('../../keeper/start-lock.ts');
  return withoutStarts(openHome(home), () => endPresent(caller, graceMs));
}

async function endPresent(
  caller: Caller,
  graceMs: number | undefined,
): Promise<EndedKeeper | undefined> {
  try {
    const host = await reached(caller, graceMs);
    if (!host) return undefined;
    const report = await host.stop(graceMs);
    const { pid } = host.keeper;
    if (!(await endsWithin(pid, EXIT_MS))) throw stillThere(pid);
    return { pid, report };
  } catch (error) {
    // It exited during the request, or did not answer.
    if (!isError(error, 'not_answering', 'keeper_lost')) throw error;
    return endByForce(caller.home, graceMs);
  }
}

/**
 * Waits a short time only, because SIGTERM has the same effect as a request. A grace period that was given needs the
 * request.
 */
async function reached(
  caller: Caller,
  graceMs: number | undefined,
): Promise<KeeperLink | undefined> {
  const running = caller.running();
  if (graceMs !== undefined) return running;
  const late = new AbortController();
  try {
    return await Promise.race([running, tooLate(late.signal)]);
  } finally {
    late.abort();
  }
}

/** Before anything is ended. A keeper that does not answer, or is only just starting, is ended nevertheless. */
export async function refuseInside(caller: Caller): Promise<void> {
  try {
    await reached(caller, undefined);
    await caller.refuseInside('end the keeper');
  } catch (error) {
    if (!isError(error, 'not_answering', 'keeper_lost')) throw error;
  }
}

async function tooLate(signal: AbortSignal): Promise<never> {
  await pause(REACH_MS, undefined, { signal });
  throw new HoldfastError('not_answering', `No answer within ${REACH_MS} ms.`);
}

/** SIGTERM makes a keeper end everything. A stopped keeper needs SIGCONT to get it. */
async function endByForce(
  home: string,
  graceMs: number | undefined,
): Promise<EndedKeeper | undefined> {
  if (!existsSync(home)) return undefined;
  const { openHome } = await import('../../keeper/home.ts');
  const { lockHolder, readNote } = await import('../../keeper/home-lock.ts');
  const { lock } = openHome(home);
  const holder = lockHolder<KeeperNote>(lock);
  if (holder === 'unknown')
    throw new HoldfastError(
      'not_answering',
      `The keeper of ${home} has not identified itself yet.`,
    );
  const now = (): ReturnType<typeof lockHolder> => lockHolder(lock);
  if (holder) signalHolder(holder, `The keeper of ${home}`, now, 'SIGTERM', 'SIGCONT');
  // Without a holder the keeper has released the home and is about to exit.
  const leaving = holder ?? readNote<KeeperNote>(lock);
  if (!leaving) return undefined;
  const { pid } = leaving;
  if (!(await endsWithin(pid, LEAVE_MS + (graceMs ?? 0)))) throw stillThere(pid);
  const last = readNote<KeeperNote>(lock);
  return { pid, report: last?.pid === pid ? last.closed : undefined };
}

function stillThere(pid: number): HoldfastError {
  const advice = `Its processes may be alive. End it with "kill -9 ${pid}"; the next keeper reports them as lost and can stop them`;
  return new HoldfastError(
    'not_answering',
    `The keeper (pid ${pid}) was asked to exit and has not. ${advice}.`,
    { pid },
  );
}
