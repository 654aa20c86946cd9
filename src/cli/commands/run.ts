// `holdfast run`

import { resolve } from 'node:path';
import type { StartSpec } from '../../protocol/operations.ts';
import type { Outcome, ProcessInfo } from '../../protocol/process.ts';
import type { Caller } from '../caller.ts';
import { isError } from '../caller.ts';
import type { Answer, Call, Command } from '../command.ts';
import { follow, passTo, targetOf } from '../follow.ts';
import { forwardInput } from '../forward-input.ts';
import { inheritedEnvironment } from '../inherited-environment.ts';
import { Interrupts } from '../interrupts.ts';
import { showElapsed } from '../elapsed.ts';
import type { Output } from '../output.ts';
import { endNote, exitCodeOf, outcomeWords, STILL_RUNNING_EXIT } from '../outcome.ts';
import { formatDuration } from '../units.ts';
import type { Words } from '../words.ts';

export const command: Command = {
  name: 'run',
  usage: "[options] 'SHELL COMMAND' | [options] -- PROGRAM [ARGUMENT]...",
  summary: 'Start a process, show what it prints, and end as it ends.',
  options: {
    background: { type: 'boolean', short: 'b', about: 'print the id and leave at once' },
    name: { type: 'string', value: 'NAME', about: 'a name to find it by' },
    cwd: { type: 'string', value: 'DIR', about: 'where it runs (default: here)' },
    timeout: { type: 'string', value: '30s', about: 'how long to wait; it goes on afterwards' },
    'hard-timeout': { type: 'string', value: '5m', about: 'ends the process after this long' },
    stdin: {
      type: 'boolean',
      about: 'give it an input: that of this command, or with --background what "send" sends',
    },
    pty: { type: 'boolean', about: 'run it in a terminal' },
    merged: { type: 'boolean', about: 'stdout and stderr as one stream, in their true order' },
    key: { type: 'string', value: 'KEY', about: 'the same start with the same key is done once' },
    raw: { type: 'boolean', about: 'control characters go to a terminal as they are' },
  },
  notes: [
    'One word is a command for sh; behind "--" stand a program and its arguments, taken as they are.',
    'It has the environment and directory of this command. Ctrl-C goes to it as SIGINT; when it does not',
    'end, the third Ctrl-C leaves it running. So do Ctrl-\\ at once and closing the terminal.',
    'Exit code: that of the process; 128 + n for signal n; 124 when its hard timeout ended it;',
    '125 when nobody knows how it ended; 123 when it goes on: the time to wait was over, or Ctrl-\\.',
  ],
  async run(call): Promise<Answer> {
    const { words, caller, out } = call;
    const spec = specOf(words, caller);
    const interrupts = new Interrupts(out);
    try {
      const host = await caller.host();
      const { process, attached } = await host.start(caller.name, spec);
      if (attached && !out.json)
        await out.note(
          `this is the process that was started with the key "${spec.key ?? ''}" before.`,
        );
      if (words.flag('background')) return { result: { process, attached }, lines: [process.id] };
      interrupts.sendTo(host, process, caller.name);
      if (words.flag('stdin')) void forwardInput(host, process);
      return await (out.json ? report(call, process, interrupts) : show(call, process, interrupts));
    } finally {
      interrupts.close();
      // An input that is still open would keep this command alive.
      if (words.flag('stdin')) process.stdin.destroy();
    }
  },
};

function specOf(words: Words, caller: Caller): StartSpec {
  const { behindDashes } = words;
  const front = words.plain.slice(0, words.plain.length - (behindDashes?.length ?? 0));
  const [first] = front;
  if (behindDashes ? behindDashes.length === 0 || first !== undefined : front.length !== 1) {
    throw words.wrong(
      'give one word for the shell, in quotes, or a program and its arguments behind "--"',
    );
  }
  const what = behindDashes ? { argv: [...behindDashes] } : { command: first ?? '' };
  const pty = words.flag('pty');
  const { columns: cols, rows } = process.stdout;
  const [name, key, hardTimeoutMs] = [
    words.text('name'),
    words.text('key'),
    words.durationMs('hard-timeout'),
  ];
  return {
    ...what,
    cwd: resolve(caller.cwd, words.text('cwd') ?? '.'),
    // The keeper's own environment is that of whoever started it first.
    environment: { inherit: 'none' },
    env: inheritedEnvironment(caller.env, pty),
    streams: pty ? 'pty' : words.flag('merged') ? 'merged' : 'separate',
    stdin: words.flag('stdin') ? 'pipe' : 'none',
    ...(pty && process.stdout.isTTY && { size: { cols, rows } }),
    ...(name !== undefined && { name }),
    ...(key !== undefined && { key }),
    ...(hardTimeoutMs !== undefined && { hardTimeoutMs }),
  };
}

/** Prints while it runs. */
async function show(
  { words, caller, out }: Call,
  process: ProcessInfo,
  interrupts: Interrupts,
): Promise<Answer> {
  const timeoutMs = words.durationMs('timeout');
  const { signal } = interrupts;
  const leftRunning = `left running: ${process.id}. "holdfast stop ${process.id.slice(0, 8)}" ends it.`;
  out.ifNobodyReads = leftRunning;
  const watch = showElapsed(out, process);
  try {
    const { outcome } = await follow(caller, process, {
      until: 'exit',
      paced: true,
      timeoutMs,
      signal,
      ...passTo(targetOf(out)),
    });
    await out.finish();
    if (outcome === undefined) {
      await out.note(`still running after ${formatDuration(timeoutMs ?? 0)}: ${process.id}`);
      return { result: undefined, exitCode: STILL_RUNNING_EXIT };
    }
    watch.stop();
    await tellEnd(out, outcome, watch.elapsed());
    await tellIfOpen({ caller, out }, process);
    return { result: undefined, exitCode: exitCodeOf(outcome) };
  } catch (error) {
    if (!isError(error, 'aborted')) throw error;
    await out.note(leftRunning);
    return { result: undefined, exitCode: interrupts.detachedByKey ? STILL_RUNNING_EXIT : 130 };
  } finally {
    watch.stop();
  }
}

/** What the exit code alone does not say; a person is also told the rest, and how long it took. */
async function tellEnd(out: Output, outcome: Outcome, elapsed: string): Promise<void> {
  const good = outcome.kind === 'exit' && outcome.code === 0;
  const note = endNote(outcome) ?? (out.watched ? `${outcomeWords(outcome)}.` : undefined);
  if (note === undefined) return;
  const told = out.watched ? `${note.replace(/\.$/, '')} (${elapsed}).` : note;
  await out.note(told, good ? 'dim' : 'red');
}

/** `closed` follows the exit at once unless somebody else holds the output open. */
const CLOSES_WITHIN_MS = 100;

async function tellIfOpen(
  { caller, out }: Pick<Call, 'caller' | 'out'>,
  { id, owner }: ProcessInfo,
): Promise<void> {
  const waits = [{ id, for: [{ kind: 'closed' as const }] }];
  const { timedOut } = await caller.ask((host) =>
    host.wait(owner, { waits, timeoutMs: CLOSES_WITHIN_MS }),
  );
  if (!timedOut) return;
  await out.note(
    `it has ended, but a descendant still holds its output open: "holdfast logs -f ${id.slice(0, 8)}" follows.`,
  );
}

/** Waits, and answers with everything at once. */
async function report(
  { words, caller }: Call,
  process: ProcessInfo,
  interrupts: Interrupts,
): Promise<Answer> {
  const timeoutMs = words.durationMs('timeout');
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
