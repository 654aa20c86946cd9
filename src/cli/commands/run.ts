// `holdfast run`

import { causeWords, weaknessWords } from '../../protocol/confinement/words.ts';
import { usageWords } from '../output/usage.ts';
import type { KeeperLink } from '../../keeper/link.ts';
import type { ErrorCode } from '../../protocol/errors.ts';
import type { Outcome, ProcessInfo } from '../../protocol/process.ts';
import { isError } from '../caller.ts';
import type { Answer, Call, Command } from '../arguments/command.ts';
import { follow, passTo, targetOf } from '../log/follow.ts';
import { forwardInput } from '../forward-input.ts';
import { Interrupts } from '../interrupts.ts';
import { showElapsed } from '../output/elapsed.ts';
import type { Output } from '../output/output.ts';
import {
  endNote,
  exitCodeOf,
  FAILED_EXIT,
  outcomeWords,
  STILL_RUNNING_EXIT,
} from '../output/outcome.ts';
import { runOptions, runPlanOf, type RunPlan } from '../arguments/run-plan.ts';
import { attachTo } from '../attachment.ts';
import { formatDuration } from '../arguments/units.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'run',
  usage: "[options] 'SHELL COMMAND' | [options] PROGRAM ARGUMENT...",
  summary: summaries.run,
  examples: [
    'holdfast run npm test',
    'holdfast run --background --name web npm run dev',
    "holdfast run --name build --timeout 30s 'make 2>&1 | tee build.log'",
    'holdfast run -it python3',
  ],
  options: runOptions,
  notes: [
    'One argument is a shell command; several are a program and its arguments. Options go before the command.',
    'After "--" even one argument is a program. The process gets the environment and directory of this command.',
    'Ctrl-C sends SIGINT; the third Ctrl-C detaches and leaves the process running. Ctrl-\\ detaches at once, and so',
    'does closing the terminal. If the reader of the output goes away ("| head -1") the process gets SIGTERM,',
    'unless --keep is given.',
    'Exit code: that of the process; 128 + n for signal n; 124 when its hard timeout ended it;',
    '123 when it keeps running: the time to wait passed, or Ctrl-\\. Failures of Holdfast itself: 127 when the',
    'program was not found, 126 when it cannot be executed, 125 for all others, and when the outcome is unknown.',
  ],
  runsWords: true,
  failureExit: runFailureExit,
  read(call) {
    const plan = runPlanOf(call);
    return () => runPlanned(call, plan);
  },
};

export function runFailureExit(code: ErrorCode): number {
  if (code === 'program_not_found') return 127;
  return code === 'program_not_executable' ? 126 : FAILED_EXIT;
}

export function runPlanned(call: Call, plan: RunPlan): Promise<Answer> {
  return plan.interactive ? runAttached(call, plan) : start(call, plan);
}

function start(call: Call, plan: RunPlan): Promise<Answer> {
  return interruptible(call, plan, async (interrupts) => {
    const { caller } = call;
    const host = await caller.host();
    const { process, attached } = await host.start(caller.name, plan.spec);
    await reportStart(call, host, { process, attached });
    if (plan.background) return { result: { process, attached }, lines: [process.id] };
    return showInterruptibly(call, process, { ...plan, interrupts });
  });
}

/** Its output from the beginning, then what follows; stdin of this command goes to it. */
export function showUntilExit(call: Call, process: ProcessInfo, plan: RunPlan): Promise<Answer> {
  return interruptible(call, plan, (interrupts) =>
    showInterruptibly(call, process, { ...plan, interrupts }),
  );
}

async function showInterruptibly(call: Call, process: ProcessInfo, plan: Showing): Promise<Answer> {
  const { caller, out } = call;
  const host = await caller.host();
  plan.interrupts.sendTo(host, process, caller.name);
  if (plan.stdin) void forwardInput(host, process);
  const how = out.json ? report : show;
  return how(call, process, plan);
}

/** A signal that comes before the process is there is sent when it is. */
async function interruptible(
  { out }: Call,
  plan: RunPlan,
  work: (interrupts: Interrupts) => Promise<Answer>,
): Promise<Answer> {
  const interrupts = new Interrupts(out);
  try {
    return await work(interrupts);
  } finally {
    interrupts.close();
    // An open stdin would keep this command alive.
    if (plan.stdin) process.stdin.destroy();
  }
}

/** Reports an earlier start under the same key, and other running processes with the name. */
async function reportStart(
  { caller, out }: Call,
  host: KeeperLink,
  { process, attached }: { readonly process: ProcessInfo; readonly attached: boolean },
): Promise<void> {
  if (out.json) return;
  const { id, name, key } = process;
  if (attached)
    await out.note(`attached to the process that was started earlier with the key "${key ?? ''}".`);
  if (name === undefined || attached) return;
  const { processes } = await host.list(caller.sees, { name, state: 'running', limit: 10 });
  const others = processes.filter((other) => other.id !== id);
  const [other] = others;
  if (other)
    await out.note(
      `${others.map((each) => each.id).join(', ')} also has the name "${name}" and is running: use ids to tell them apart.`,
    );
}

/** `run -it`: starts the program in a terminal and attaches to it. */
async function runAttached({ caller, out }: Call, { spec }: RunPlan): Promise<Answer> {
  const host = await caller.host();
  const { process } = await host.start(caller.name, spec);
  return attachPerson({ caller, out }, process);
}

/** Attaches the terminal of this command until the process ends, or the person detaches. */
export async function attachPerson(
  { caller, out }: Pick<Call, 'caller' | 'out'>,
  process: ProcessInfo,
  how: { readonly steal?: boolean } = {},
): Promise<Answer> {
  const { id, owner } = process;
  const { detached } = await attachTo(caller, process, how);
  const { outcome } = await caller.ask((link) => link.get(owner, { id }));
  if (detached || !outcome) {
    await out.note(leftRunning(process));
    return { result: undefined, exitCode: STILL_RUNNING_EXIT };
  }
  const note = endNote(outcome);
  if (note !== undefined) await out.note(note, { style: 'red' });
  return { result: undefined, exitCode: exitCodeOf(outcome) };
}

function leftRunning({ id }: ProcessInfo): string {
  return `left running: ${id}. Stop it with "holdfast stop ${id.slice(0, 8)}".`;
}

type Showing = RunPlan & { readonly interrupts: Interrupts };

/** Prints while it runs. */
async function show(call: Call, process: ProcessInfo, plan: Showing): Promise<Answer> {
  const { caller, out } = call;
  const { timeoutMs, interrupts, colours } = plan;
  out.onReaderGone = (pipeClosed) => leaveUnread(call, process, pipeClosed && !plan.keep);
  if (colours) out.passColours();
  const keys = 'Ctrl-C interrupts, Ctrl-\\ detaches';
  const attach =
    process.streams === 'pty' ? `, "holdfast attach ${process.id.slice(0, 8)}" types` : '';
  const watch = showElapsed(out, process, keys + attach);
  try {
    const { outcome } = await follow(caller, process, {
      until: 'exit',
      paced: true,
      timeoutMs,
      signal: interrupts.signal,
      ...passTo(targetOf(out)),
    });
    await out.finish();
    if (outcome === undefined) {
      await out.note(`still running after ${formatDuration(timeoutMs ?? 0)}: ${process.id}`);
      return { result: undefined, exitCode: STILL_RUNNING_EXIT };
    }
    watch.stop();
    if (out.unread) return { result: undefined };
    const ended = await caller.ask((host) => host.get(process.owner, { id: process.id }));
    const cost = out.watched ? costOf(ended) : '';
    await reportEnd(out, outcome, `${watch.elapsed()}${cost}`);
    for (const cause of ended.causes ?? [])
      await out.note(`${causeWords(cause)}.`, { style: 'red' });
    const weak = weaknessWords(ended.confinement);
    if (weak !== undefined) await out.note(`confinement: ${weak}.`);
    await reportIfOpen({ caller, out }, process);
    return { result: undefined, exitCode: exitCodeOf(outcome) };
  } catch (error) {
    if (!isError(error, 'aborted')) throw error;
    await out.note(leftRunning(process));
    return { result: undefined, exitCode: interrupts.detachedByKey ? STILL_RUNNING_EXIT : 130 };
  } finally {
    watch.stop();
  }
}

/** A closed pipe sends SIGTERM to the process, like SIGPIPE to a program; a closed terminal does not. */
async function leaveUnread(
  { caller, out }: Call,
  process: ProcessInfo,
  ends: boolean,
): Promise<void> {
  if (!ends) return out.note(leftRunning(process));
  const { id, owner } = process;
  const host = await caller.host();
  await host.signal(owner, { id, signal: 'TERM', by: caller.name });
  await out.note(
    `the reader of its output went away: sent SIGTERM to ${id}. Use "run --keep" to keep it running.`,
  );
}

/** Prints what the exit code does not say; on a terminal also the outcome and the elapsed time. */
async function reportEnd(out: Output, outcome: Outcome, elapsed: string): Promise<void> {
  const good = outcome.kind === 'exit' && outcome.code === 0;
  const note = endNote(outcome) ?? (out.watched ? `${outcomeWords(outcome)}.` : undefined);
  if (note === undefined) return;
  const text = out.watched ? `${note.replace(/\.$/, '')} (${elapsed}).` : note;
  await out.note(text, { style: good ? 'dim' : 'red' });
}

/** Less is not worth a word. */
const WORTH_MS = 1000;

function costOf({ usage }: ProcessInfo): string {
  return usage && usage.userMs + usage.systemMs >= WORTH_MS ? `; ${usageWords(usage)}` : '';
}

/** `closed` follows the exit at once, unless a descendant holds the output open. */
const CLOSES_WITHIN_MS = 100;

async function reportIfOpen(
  { caller, out }: Pick<Call, 'caller' | 'out'>,
  { id, owner }: ProcessInfo,
): Promise<void> {
  const waits = [{ id, for: [{ kind: 'closed' as const }] }];
  const { timedOut } = await caller.ask((host) =>
    host.wait(owner, { waits, timeoutMs: CLOSES_WITHIN_MS }),
  );
  if (!timedOut) return;
  await out.note(
    `it has exited, but a descendant holds its output open: follow it with "holdfast logs -f ${id.slice(0, 8)}".`,
  );
}

/** With --json: waits, then returns everything at once. */
async function report(
  { caller }: Call,
  process: ProcessInfo,
  { timeoutMs, interrupts }: Showing,
): Promise<Answer> {
  const { id, owner } = process;
  const params = {
    waits: [{ id, for: [{ kind: 'exit' as const }] }],
    ...(timeoutMs !== undefined && { timeoutMs }),
  };
  const { timedOut } = await caller.ask((host) => host.wait(owner, params, interrupts.signal));
  const text = await caller.ask((host) => host.text(owner, { id }));
  const { outcome } = text.process;
  const exitCode = outcome ? exitCodeOf(outcome) : STILL_RUNNING_EXIT;
  return { result: { ...text, timedOut, exitCode }, exitCode };
}
