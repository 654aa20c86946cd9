// Ending a process and everything that came from it. The group is signalled by its number only while the root is ours
// to reap; whoever left the group is signalled one by one, each checked to be who it was.

import { constants } from 'node:os';
import type { Clock } from '../base/clock.ts';
import { errnoOf } from '../base/disk.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { SignalResult, Survivor } from '../protocol/host-api.ts';
import { waitUntil } from '../journal/wait-until.ts';
import type { HeldProcess } from './held-process.ts';
import type { Kin } from './kin.ts';

export interface TerminationTools {
  readonly clock: Clock;
  readonly kin: Kin;
  readonly graceMs: number;
}

export interface SignalRequest {
  readonly signal: string;
  readonly by: string;
  readonly graceMs?: number | undefined;
  readonly reach?: 'all' | 'foreground' | undefined;
}

/** Rounds of KILL: each catches what was forked while the one before was sent. */
const KILL_ROUNDS = 50;
const ROUND_MS = 100;
/** What ends by TERM has mostly done so by then. */
const HANG_UP_AFTER_MS = 100;

export async function sendSignal(
  process: HeldProcess,
  request: SignalRequest,
  tools: TerminationTools,
): Promise<SignalResult> {
  const { kin } = tools;
  const wanted = request.signal.toLowerCase();
  const name = wanted === 'terminate' ? 'SIGTERM' : signalName(request.signal);
  if (request.reach === 'foreground') return signalForeground(process, name, request.by);
  const found = process.settled ? [] : await kin.find(process);
  if (found.length === 0 && !process.rootAlive) {
    kin.check(process);
    throw process.notRunning();
  }
  const escapees = found
    .filter((entry) => entry.group !== process.facts.pid)
    .map((entry) => entry.pid);
  // Before it is sent: the exit may be known in the next moment and must find the sender.
  process.noteSignal(name, request.by, escapees);
  const signalled = kin.signal(process, found, name);
  if (wanted !== 'terminate' && name !== 'SIGKILL')
    return { signalled, escapees, survivors: [], escalated: false };
  if (wanted === 'terminate') {
    // A stopped process would sit on the TERM until someone continues it.
    kin.signal(process, found, 'SIGCONT');
    const graceMs = request.graceMs ?? tools.graceMs;
    await hangUp(process, request.by, graceMs, tools);
    await settled(process, graceMs, tools);
    // Looked for once more, thoroughly: what is answered is what was seen.
    if (!process.rootAlive && (await kin.find(process)).length === 0) {
      return { signalled, escapees, survivors: [], escalated: false };
    }
    process.noteSignal('SIGKILL', request.by, []);
  }
  const survivors = await killAll(process, tools);
  return { signalled, escapees, survivors, escalated: wanted === 'terminate' };
}

/** To the group that has the terminal, as Ctrl-C does: the shell behind it is not touched unless it has it itself. */
function signalForeground(held: HeldProcess, name: NodeJS.Signals, by: string): SignalResult {
  const group = held.foreground();
  if (group === undefined) throw held.notRunning();
  held.noteSignal(name, by, []);
  try {
    process.kill(-group, name);
  } catch (error) {
    // Its last member has just ended.
    if (errnoOf(error) !== 'ESRCH') throw error;
    return { signalled: [], escapees: [], survivors: [], escalated: false };
  }
  return { signalled: [group], escapees: [], survivors: [], escalated: false };
}

/** An interactive shell ignores TERM; it ends when its terminal hangs up. */
async function hangUp(
  process: HeldProcess,
  by: string,
  graceMs: number,
  tools: TerminationTools,
): Promise<void> {
  if (process.facts.streams !== 'pty') return;
  await settled(process, Math.min(HANG_UP_AFTER_MS, graceMs), tools);
  if (!process.rootAlive || graceMs <= HANG_UP_AFTER_MS) return;
  process.noteSignal('SIGHUP', by, []);
  tools.kin.signal(process, await tools.kin.find(process), 'SIGHUP');
}

/** KILL until nothing is left, or until it is clear that something cannot be killed. */
async function killAll(process: HeldProcess, tools: TerminationTools): Promise<Survivor[]> {
  for (let round = 0; round < KILL_ROUNDS; round += 1) {
    const found = await tools.kin.find(process);
    if (found.length === 0 && !process.rootAlive) break;
    tools.kin.signal(process, found, 'SIGKILL');
    await settled(process, ROUND_MS, tools);
  }
  return tools.kin.survivors(process);
}

async function settled(
  process: HeldProcess,
  ms: number,
  { clock, kin }: TerminationTools,
): Promise<void> {
  kin.check(process);
  await waitUntil(() => process.settled || undefined, {
    clock,
    timeoutMs: ms,
    subscribe: (wake) => kin.onChange(process, wake),
  });
}

/** "int", "INT" and "SIGINT" are the same; "kill" too. Anything else is refused by name. */
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
