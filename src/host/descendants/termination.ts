// Ends a process and its descendants. The group is signalled by number only while we can reap the root; descendants
// outside the group are signalled one by one, each verified.

import { constants } from 'node:os';
import type { Clock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { SignalResult } from '../../protocol/host-api.ts';
import { waitUntil } from '../wait/wait-until.ts';
import { signalGroup, type Reach } from './descendants.ts';
import type { HeldProcess } from '../process/held-process.ts';
import { isNobody, withCommand, type DescendantTracker } from './descendant-tracker.ts';

export interface TerminationTools {
  readonly clock: Clock;
  readonly tracker: DescendantTracker<HeldProcess>;
  readonly graceMs: number;
  /** Ends all members of its cgroup at once, also those that fork meanwhile. */
  readonly killGroup?: (process: HeldProcess) => void;
}

export interface SignalRequest {
  readonly signal: string;
  readonly by: string;
  readonly graceMs?: number | undefined;
  readonly reach?: 'all' | 'foreground' | undefined;
}

/** Rounds of SIGKILL: each catches what was forked during the one before. */
const KILL_ROUNDS = 50;
const ROUND_MS = 100;
export const KILL_MS = KILL_ROUNDS * ROUND_MS;
/** Nobody is left, so it is settled as soon as the kernel has reported the last exit. */
const SETTLE_MS = 1000;
/** By then most processes have ended by SIGTERM. */
const HANG_UP_AFTER_MS = 100;

/**
 * What could not be signalled or searched is part of the answer, never an exception. A signal is recorded after it was
 * delivered: exits are reported from the event loop, so they still find the sender.
 */
export async function sendSignal(
  process: HeldProcess,
  request: SignalRequest,
  tools: TerminationTools,
): Promise<SignalResult> {
  const { tracker } = tools;
  const wanted = request.signal.toLowerCase();
  const name = wanted === 'terminate' ? 'SIGTERM' : signalName(request.signal);
  if (name !== 'SIGKILL') await process.ready;
  if (request.reach === 'foreground') return signalForeground(process, name, request.by);
  const { found, unsearched } = await tracker.search(process);
  if (found.length === 0 && !process.rootAlive && !unsearched) {
    tracker.check(process);
    throw process.notRunning();
  }
  const { reached: signalled, refused } = tracker.signal(process, found, name);
  const escapees = found
    .filter(({ pid, group }) => group !== process.facts.pid && signalled.includes(pid))
    .map(({ pid }) => pid);
  if (signalled.length > 0) process.noteSignal(name, request.by, escapees);
  if (wanted !== 'terminate' && name !== 'SIGKILL') {
    return {
      signalled,
      escapees,
      survivors: [],
      escalated: false,
      ...(refused.length > 0 && {
        refused: refused.map(({ pid, reason }) => ({ ...withCommand(pid), reason })),
      }),
      ...(unsearched && { unsearched }),
    };
  }
  if (wanted === 'terminate') {
    // A stopped process would keep the SIGTERM pending until it is continued.
    tracker.signal(process, found, 'SIGCONT');
    const graceMs = signalled.length > 0 ? (request.graceMs ?? tools.graceMs) : 0;
    await hangUp(process, request.by, graceMs, tools);
    await settled(process, graceMs, tools);
    // One more thorough search, so that the answer says what was seen.
    const left = await tracker.search(process);
    if (!process.rootAlive && isNobody(left)) {
      await settled(process, SETTLE_MS, tools);
      return { signalled, escapees, survivors: [], escalated: false };
    }
  }
  const left = await killAll(process, request.by, tools, wanted === 'terminate');
  if (left.survivors.length === 0 && !left.unsearched) await settled(process, SETTLE_MS, tools);
  return { signalled, escapees, ...left };
}

/** Signals the foreground group, as Ctrl-C does, and the shell only if it is in it. */
function signalForeground(held: HeldProcess, name: NodeJS.Signals, by: string): SignalResult {
  const group = held.foreground();
  if (group === undefined) throw held.notRunning();
  const delivery = signalGroup(group, name);
  if (delivery === 'sent') held.noteSignal(name, by, []);
  return {
    signalled: delivery === 'sent' ? [group] : [],
    escapees: [],
    survivors: [],
    escalated: false,
    ...(delivery === 'not_permitted' && {
      refused: [{ ...withCommand(group), reason: delivery }],
    }),
  };
}

/** An interactive shell ignores SIGTERM; it exits when its terminal hangs up. */
async function hangUp(
  process: HeldProcess,
  by: string,
  graceMs: number,
  tools: TerminationTools,
): Promise<void> {
  if (process.facts.streams !== 'pty') return;
  await settled(process, Math.min(HANG_UP_AFTER_MS, graceMs), tools);
  if (!process.rootAlive || graceMs <= HANG_UP_AFTER_MS) return;
  const { found } = await tools.tracker.search(process);
  const { reached } = tools.tracker.signal(process, found, 'SIGHUP');
  if (reached.length > 0) process.noteSignal('SIGHUP', by, []);
}

/** SIGKILL until nothing is left, or until it is clear that something cannot be killed. */
async function killAll(
  process: HeldProcess,
  by: string,
  tools: TerminationTools,
  escalating: boolean,
): Promise<Pick<SignalResult, 'survivors' | 'escalated' | 'refused' | 'unsearched'>> {
  let sent = false;
  let refused: Reach['refused'] = [];
  for (let round = 0; round < KILL_ROUNDS; round += 1) {
    const search = await tools.tracker.search(process);
    const { found } = search;
    // If the search fails, only the root and its group can be reached. A program in exec may be one of ours.
    if (found.length === 0 && !search.isUnsure && !process.rootAlive) break;
    const reach = tools.tracker.signal(process, found, 'SIGKILL');
    // After the others have been found and counted: the group holds what was forked meanwhile.
    tools.killGroup?.(process);
    refused = reach.refused;
    // A SIGKILL that the caller asked for has already been recorded.
    if (escalating && !sent && reach.reached.length > 0) process.noteSignal('SIGKILL', by, []);
    sent ||= reach.reached.length > 0;
    const hopeless = refused.every(({ reason }) => reason === 'not_permitted');
    if (reach.reached.length === 0 && refused.length > 0 && hopeless) break;
    await settled(process, ROUND_MS, tools);
  }
  const { survivors, ...rest } = await tools.tracker.survivors(process);
  const reasons = new Map(refused.map(({ pid, reason }) => [pid, reason]));
  const left = survivors.flatMap((survivor) => {
    const reason = reasons.get(survivor.pid);
    return reason === undefined ? [] : [{ ...survivor, reason }];
  });
  const escalated = escalating && sent;
  return { survivors, escalated, ...(left.length > 0 && { refused: left }), ...rest };
}

async function settled(
  process: HeldProcess,
  ms: number,
  { clock, tracker }: TerminationTools,
): Promise<void> {
  tracker.check(process);
  await waitUntil(() => process.settled || undefined, {
    clock,
    timeoutMs: ms,
    subscribe: (wake) => tracker.onChange(process, wake),
  });
}

/** "int", "INT" and "SIGINT" are the same; "kill" too. Other names are refused. */
function signalName(text: string): NodeJS.Signals {
  const upper = text.toUpperCase();
  const name = upper.startsWith('SIG') ? upper : `SIG${upper}`;
  if (Object.hasOwn(constants.signals, name)) return name as NodeJS.Signals;
  const known = 'terminate, kill, or a signal by name such as SIGINT';
  throw new HoldfastError(
    'invalid_input',
    `signal: "${text.slice(0, 40)}" is not a signal: use ${known}.`,
    { field: 'signal' },
  );
}
