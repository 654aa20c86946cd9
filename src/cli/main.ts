#!/usr/bin/env node
// The command line: finds the command, gives it its words, prints its answer, and ends with its exit code.

import { errors, HoldfastError, toErrorShape, type ErrorShape } from '../protocol/errors.ts';
import { Caller } from './caller.ts';
import { helpOf, type Answer, type Command } from './command.ts';
import { commands } from './commands.ts';
import { Output } from './output.ts';
import { label } from './terminal-text.ts';
import { Words } from './words.ts';

/** 128 + SIGPIPE: what a program that nobody listens to ends with. */
const BROKEN_PIPE_EXIT = 141;

const [first = 'help', ...rest] = process.argv.slice(2);
const name =
  { '--help': 'help', '-h': 'help', '--version': 'version', '-V': 'version' }[first] ?? first;

process.exitCode = await main();

async function main(): Promise<number> {
  const json = has(rest, '--json');
  const raw = has(rest, '--raw');
  const { stdout, stderr, env } = process;
  const colour = !env['NO_COLOR'] && env['TERM'] !== 'dumb';
  const out = new Output({ stdout, stderr, json, raw, colour });
  leaveWhenNobodyReads(out);
  if (name === 'tty') {
    // Its commands have flags and envelopes of their own.
    const { ttyMain } = await import('./tty/main.ts');
    return ttyMain(rest, { env: process.env, cwd: process.cwd(), program: 'holdfast tty' });
  }
  try {
    const command = await find();
    const answer = await perform(command, out);
    return await tell(out, answer);
  } catch (error) {
    return tell(out, { result: undefined, error });
  }
}

function leaveWhenNobodyReads(out: Output): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      // EIO: the terminal has been closed.
      if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error;
      if (stream === process.stdout && out.ifNobodyReads !== undefined)
        void out.note(out.ifNobodyReads);
      process.exit(BROKEN_PIPE_EXIT);
    });
  }
}

async function find(): Promise<Command> {
  const load = commands.get(name);
  if (load) return (await load()).command;
  const problem = name.startsWith('-')
    ? 'Options stand behind the command'
    : `There is no command "${label(name)}"`;
  throw new HoldfastError('invalid_input', `${problem}.`, { usage: 'holdfast help' });
}

async function perform(command: Command, out: Output): Promise<Answer> {
  const words = new Words(command, rest);
  if (words.flag('help')) {
    const { usage, summary, options } = command;
    return { result: { name: command.name, usage, summary, options }, lines: helpOf(command) };
  }
  const { env } = process;
  const caller = new Caller({
    env,
    cwd: process.cwd(),
    home: words.text('home'),
    owner: words.text('owner'),
  });
  try {
    return await command.run({ words, caller, out });
  } finally {
    out.endLive();
    await out.finish();
    await caller.close();
  }
}

async function tell(out: Output, answer: Answer): Promise<number> {
  const { result, lines = [], error } = answer;
  if (answer.said) return answer.exitCode ?? 0;
  if (out.json) await out.line(json(envelope(result, error)));
  else
    for (const line of lines)
      await (typeof line === 'string' ? out.line(line) : out.line(line.text, line.style));
  if (error === undefined) return answer.exitCode ?? 0;
  const shape = toErrorShape(error);
  if (!out.json) await out.note(`${shape.message}\n          ${remedyOf(shape)}`, 'red');
  return answer.exitCode ?? errors[shape.code].exit;
}

function remedyOf({ code, details }: ErrorShape): string {
  const usage = details?.['usage'];
  return typeof usage === 'string' ? `Usage: ${usage}` : errors[code].remedy;
}

function envelope(result: unknown, error: unknown): Record<string, unknown> {
  const head = { ok: error === undefined, command: name, timestamp: new Date().toISOString() };
  if (error === undefined) return { ...head, result };
  const shape = toErrorShape(error);
  const { retryable } = errors[shape.code];
  const told = { ...shape, remedy: remedyOf(shape), retryable };
  return { ...head, ...(result !== undefined && { result }), error: told };
}

/** JSON.stringify leaves DEL and C1 as they are, and a terminal may obey them. */
function json(value: unknown): string {
  // oxlint-disable-next-line no-control-regex
  return JSON.stringify(value).replace(/[\x7f-\x9f]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/** Before the words are read, so that an error in them is told in the form that was asked for. */
function has(args: readonly string[], option: string): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end < 0 ? args.length : end).includes(option);
}
