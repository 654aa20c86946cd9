// `tty run`, `type`, `paste`, `send-keys`, `mark`, `resize`, `signal`

import { randomBytes } from 'node:crypto';
import { lstatSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { randomId } from '../../../base/ids.ts';
import { EVERYONE } from '../../../protocol/host-api.ts';
import type { RunResult } from '../../../protocol/run.ts';
import { runOutput, type RunOutput } from '../../../terminals/run-output.ts';
import { isError } from '../../caller.ts';
import { exitCodeOf, STILL_RUNNING_EXIT } from '../../output/outcome.ts';
import type { TtyAnswer, TtyCall, TtyCommand } from '../command.ts';
import { TtyError } from '../envelope.ts';
import { liveTerminal } from '../sessions.ts';

const file = { type: 'string', about: 'take it from a file' } as const;
const MAX_FILE_BYTES = 10_000_000;
const DEFAULT_RUN_MS = 30_000;
/** What shells return for a command that cannot be executed. */
const NOT_EXECUTED_EXIT = 126;
/** An id that the host made belongs to one process: no lookup is needed before the call. */
const MADE_ID = /^[0-9a-z]{26}$/;

export const run: TtyCommand = {
  name: 'run',
  usage: "ID 'COMMAND' | ID --file PATH [--timeout 30000] [--no-wait]",
  summary: 'Type a command and wait for its end.',
  examples: [
    "holdfast tty run shell 'git status'",
    "holdfast tty run shell 'make' --timeout 60000",
  ],
  options: {
    file,
    timeout: {
      type: 'string',
      about: 'how long to wait at most, in milliseconds or as 30s (30000); it goes on afterwards',
    },
    'no-wait': { type: 'boolean', about: 'only type it' },
    completion: { type: 'string', about: 'how its end is known: auto, sentinel, none' },
  },
  printsText: true,
  async run(call): Promise<TtyAnswer> {
    const [id = '', text] = call.expect('ID', '[COMMAND]');
    const command = inputOf(call, text);
    const timeoutMs = call.durationMs('timeout', 'ms') ?? DEFAULT_RUN_MS;
    if (timeoutMs === 0)
      throw new TtyError('INVALID_DURATION', '--timeout must be at least 1 millisecond.');
    const completion = call.choice('completion', ['auto', 'sentinel', 'none']);
    const wait = !call.flag('no-wait');
    const target = await targetOf(call, id);
    const params = {
      ...target.params,
      command,
      run: call.isPeer ? peerMarker() : randomId(),
      wait,
      timeoutMs,
      ...(completion && { completion }),
    };
    // Repeated under its name when the keeper is lost: the command is typed once.
    const done = await alive(call, id, () =>
      call.caller.ask((host) => host.run(target.owner, params)),
    );
    if (!wait) return { result: { accepted: true, seq: done.seq }, lines: [] };
    const printed = await runOutput(await call.host(), target.owner, target.params.id, done);
    const { run: marker, completed, timedOut, durationMs, seq } = done;
    const result = {
      accepted: done.typed,
      ...(!done.typed && { typed: false, busyWith: done.busyWith }),
      completed,
      timedOut,
      seq,
      durationMs,
      marker,
      completion: done.completion,
      ...(done.exitCode !== undefined && { exitCode: done.exitCode }),
      ...(done.cwd !== undefined && { cwd: done.cwd }),
      ...(done.endSeq !== undefined && { endSeq: done.endSeq }),
      ...(done.incomplete && { incomplete: true }),
      ...(done.ended && { sessionEnded: true }),
      ...(done.executed === false && { executed: false }),
      ...(done.entered !== undefined && { entered: done.entered }),
      ...(done.cleared && { cleared: true }),
      ...(done.outputMixed && { outputMixed: true }),
      ...printed,
    };
    const note = noteOf(done, printed?.truncated);
    const exitCode = call.isPeer
      ? 0
      : done.ended
        ? await exitOfSession(call, target)
        : exitOf(done);
    return {
      result,
      lines: printed?.output ? [printed.output.replace(/\n$/, '')] : [],
      exitCode,
      ...(note !== undefined && { note }),
    };
  },
};

/** The name of a run as agent-tty's scripts know it. */
function peerMarker(): string {
  return `__AT_MARKER_${randomBytes(16).toString('hex')}__`;
}

interface Target {
  readonly owner: string;
  readonly params: { readonly id: string };
}

async function targetOf(call: TtyCall, id: string): Promise<Target> {
  if (MADE_ID.test(id)) return { owner: call.caller.sees, params: { id } };
  const process = await liveTerminal(call.caller, id);
  return { owner: process.owner, params: { id: process.id } };
}

/** Throws agent-tty's error when the session turns out to have ended or to be destroyed. */
async function alive<T>(call: TtyCall, id: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (isError(error, 'not_running', 'stdin_closed', 'not_found', 'not_a_terminal'))
      await liveTerminal(call.caller, id);
    throw error;
  }
}

/** For a person: what the output itself does not say. */
function noteOf(done: RunResult, truncated: RunOutput['truncated']): string | undefined {
  if (truncated)
    return `holdfast: the first ${truncated.omittedBytes} of ${truncated.totalBytes} bytes are left out; "holdfast logs" has them.`;
  if (!done.typed)
    return `holdfast: not typed; the terminal is busy with ${done.busyWith ?? 'something else'}.`;
  if (done.incomplete) return 'holdfast: the shell waits for the rest of the command.';
  if (done.executed === false) return 'holdfast: the shell did not execute it.';
  if (done.timedOut) return 'holdfast: it goes on; its end was not waited for any longer.';
  if (done.ended) return 'holdfast: the session has ended.';
  if (!done.completed) return 'holdfast: its end is not known.';
  if (done.outputMixed) return 'holdfast: a prompt or an echo of the shell may be in the output.';
  return undefined;
}

/** The exit code of the command; 0 only when the command is known to have ended with 0. */
function exitOf({ completed, exitCode, executed }: RunResult): number {
  if (!completed) return STILL_RUNNING_EXIT;
  return exitCode ?? (executed === false ? NOT_EXECUTED_EXIT : 0);
}

/** It ended the program of the terminal: the exit code is that program's. */
async function exitOfSession(call: TtyCall, { owner, params }: Target): Promise<number> {
  const { outcome } = await (await call.host()).get(owner, params);
  return outcome ? exitCodeOf(outcome) : STILL_RUNNING_EXIT;
}

/** Exactly one of a text and a file, neither of them empty. */
function inputOf(call: TtyCall, text: string | undefined): string {
  const path = call.text('file');
  if ((text === undefined) === (path === undefined))
    throw new TtyError(
      'INVALID_INPUT',
      text === undefined
        ? 'Provide either a positional <text> argument or --file <path>.'
        : 'A text and --file are mutually exclusive.',
    );
  const input = path === undefined ? text : readInput(resolve(call.caller.cwd, path));
  if (!input)
    throw new TtyError(
      'INVALID_INPUT',
      path === undefined ? 'Text must not be empty.' : `The file ${path} must not be empty.`,
    );
  return input;
}

function readInput(path: string): string {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found)
    throw new TtyError('INVALID_INPUT', `The file ${path} was not found.`, { file: path });
  if (!found.isFile())
    throw new TtyError('INVALID_INPUT', `${path} is not a regular file.`, { file: path });
  if (found.size > MAX_FILE_BYTES)
    throw new TtyError('INVALID_INPUT', `${path} is larger than ${MAX_FILE_BYTES} bytes.`, {
      file: path,
    });
  return readFileSync(path, 'utf8');
}

export const type: TtyCommand = {
  name: 'type',
  usage: 'ID TEXT | ID --file PATH [--append-newline]',
  summary: 'Type a text.',
  examples: [
    "holdfast tty type shell 'ls -l'",
    "holdfast tty type shell --append-newline 'print(42)'",
  ],
  options: { file, 'append-newline': { type: 'boolean', about: 'and one line end' } },
  async run(call): Promise<TtyAnswer> {
    const [id = '', text] = call.expect('ID', '[TEXT]');
    const input = inputOf(call, text);
    const data = Buffer.from(call.flag('append-newline') ? `${input}\n` : input);
    const { owner, id: target } = await liveTerminal(call.caller, id);
    const params = { id: target, data, as: 'text', writeId: randomId() } as const;
    const { seq } = await call.caller.ask((host) => host.write(owner, params));
    return { result: { seq }, lines: [] };
  },
};

export const paste: TtyCommand = {
  name: 'paste',
  usage: 'ID TEXT | ID --file PATH',
  summary: 'Paste a text: in brackets when the program asked for them.',
  examples: ['holdfast tty paste shell --file script.py'],
  options: { file },
  async run(call): Promise<TtyAnswer> {
    const [id = '', text] = call.expect('ID', '[TEXT]');
    const input = inputOf(call, text);
    const process = await liveTerminal(call.caller, id);
    const { withSession } = await import('../screen-session.ts');
    const { seq } = await withSession(call, process, (session) =>
      session.paste(input, randomId(), call.isPeer),
    );
    return { result: { seq }, lines: [] };
  },
};

export const sendKeys: TtyCommand = {
  name: 'send-keys',
  usage: 'ID KEY...',
  summary: 'Press keys: Enter, C-c, ctrl+c, Up, F5, alt+x, …',
  examples: ['holdfast tty send-keys shell Up Enter', 'holdfast tty send-keys shell C-c'],
  options: {},
  async run(call): Promise<TtyAnswer> {
    const [id = '', ...keys] = call.expect('ID', 'KEY...');
    const { checkKeys } = await import('../../../screen/view/keys.ts');
    checkKeys(keys);
    const process = await liveTerminal(call.caller, id);
    const { withSession } = await import('../screen-session.ts');
    const { seq, bytes } = await withSession(call, process, (session) =>
      session.keys(keys, randomId()),
    );
    return { result: { accepted: keys, bytesWritten: bytes, seq }, lines: [] };
  },
};

export const mark: TtyCommand = {
  name: 'mark',
  usage: 'ID LABEL',
  summary: 'Put a mark into the record.',
  examples: ['holdfast tty mark shell before-deploy'],
  options: {},
  async run(call): Promise<TtyAnswer> {
    const [id = '', label = ''] = call.expect('ID', 'LABEL');
    const { owner, id: target } = await liveTerminal(call.caller, id);
    const { seq } = await (await call.host()).mark(owner, { id: target, label });
    return { result: { seq }, lines: [] };
  },
};

export const resize: TtyCommand = {
  name: 'resize',
  usage: 'ID --cols N --rows N',
  summary: 'Change the size.',
  examples: ['holdfast tty resize shell --cols 120 --rows 40'],
  options: {
    cols: { type: 'string', about: 'columns' },
    rows: { type: 'string', about: 'rows' },
  },
  async run(call): Promise<TtyAnswer> {
    const [id = ''] = call.expect('ID');
    const { owner, id: target } = await liveTerminal(call.caller, id);
    const size = { cols: call.dimension('cols'), rows: call.dimension('rows') };
    await (await call.host()).resize(owner, { id: target, size });
    return { result: size, lines: [] };
  },
};

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGKILL', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'];
/** Signals that a key could send go to the foreground process group; the others go to every process. */
const TO_FOREGROUND = new Set(['SIGINT', 'SIGUSR1', 'SIGUSR2']);

export const signal: TtyCommand = {
  name: 'signal',
  usage: 'ID SIGNAL',
  summary: `Send one of ${SIGNALS.join(', ')}.`,
  examples: ['holdfast tty signal shell SIGINT'],
  options: { all: { type: 'boolean', about: 'to every process in it, not only the one in front' } },
  async run(call): Promise<TtyAnswer> {
    const [id = '', name = ''] = call.expect('ID', 'SIGNAL');
    const { owner, id: target } = await liveTerminal(call.caller, id);
    if (!SIGNALS.includes(name))
      throw new TtyError(
        'INVALID_SIGNAL',
        `"${name.slice(0, 40)}" is not one of ${SIGNALS.join(', ')}.`,
      );
    const reach = TO_FOREGROUND.has(name) && !call.flag('all') ? 'foreground' : 'all';
    const by = call.caller.name === EVERYONE ? 'cli' : call.caller.name;
    const host = await call.host();
    const { signalled } = await host.signal(owner, { id: target, signal: name, by, reach });
    return { result: { signal: name, delivered: signalled.length > 0 }, lines: [] };
  },
};
