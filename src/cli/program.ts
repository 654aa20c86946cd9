// The program: finds the command, reads all its words, runs it, prints the answer and returns the exit code.

import { errors, toErrorShape, type ErrorCode } from '../protocol/errors.ts';
import { Caller } from './caller.ts';
import { commonOptions, helpOf, type Answer, type Command } from './arguments/command.ts';
import { findCommand } from './commands.ts';
import { envelope } from './output/envelope.ts';
import { Output, type OutputStream } from './output/output.ts';
import { optionWords } from './arguments/parse-options.ts';
import { remedyOf } from './output/remedies.ts';
import { shortened } from './output/terminal-text.ts';
import type { Section } from './settings/table.ts';
import { Words } from './arguments/words.ts';

/** What the program is started in. */
export interface InheritedEnvironment {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** Called once, before anything is printed, with the exit code of a command whose output cannot be written. */
  readonly begun?: (out: Output, failureExit: number) => void;
}

const namesOfFlags: ReadonlyMap<string, string> = new Map([
  ['--help', 'help'],
  ['-h', 'help'],
  ['--version', 'version'],
  ['-v', 'version'],
  ['-V', 'version'],
]);

export async function runProgram(
  args: readonly string[],
  surroundings: InheritedEnvironment,
): Promise<number> {
  const [first = 'help', ...rest] = args;
  const name = namesOfFlags.get(first) ?? first;
  const command = await findCommand(name).catch((error: unknown) => ({ error }));
  const { stdout, stderr, env, cwd } = surroundings;
  // Looked at before the words are parsed, so that an error in them is printed as JSON where that is asked for.
  const flags = optionWords(rest, 'error' in command ? commonOptions : optionsOf(command), {
    stopAtWord: !('error' in command) && command.runsWords === true,
  });
  const colour = !env['NO_COLOR'] && env['TERM'] !== 'dumb';
  const [json, raw] = [flags.includes('--json'), flags.includes('--raw')];
  const out = new Output({ stdout, stderr, json, raw, colour });
  const exitOf = ('error' in command ? undefined : command.failureExit) ?? exitOfError;
  surroundings.begun?.(out, exitOf('storage_full'));
  if (name === 'tty') {
    // Its commands have flags and envelopes of their own.
    const { ttyMain } = await import('./tty/main.ts');
    return ttyMain(rest, { env, cwd, program: 'holdfast tty', stdout, stderr });
  }
  if ('error' in command) return print(name, out, { result: undefined, error: command.error });
  try {
    return await print(name, out, await perform(command, rest, { ...surroundings, out }));
  } catch (error) {
    return print(name, out, { result: undefined, error }, exitOf);
  }
}

function exitOfError(code: ErrorCode): number {
  return errors[code].exit;
}

function optionsOf(command: Command): Command['options'] {
  return { ...command.options, ...commonOptions };
}

async function perform(
  command: Command,
  args: readonly string[],
  { env, cwd, out }: InheritedEnvironment & { readonly out: Output },
): Promise<Answer> {
  const words = new Words(command, args);
  if (words.flag('help')) {
    const { name, usage, summary, examples, options } = command;
    return { result: { name, usage, summary, examples, options }, lines: helpOf(command) };
  }
  const [home, owner] = [words.text('home'), words.text('owner')];
  const note = (text: string): void => void (out.json || out.note(text));
  const caller = new Caller({ env, cwd, home, owner, note });
  if (command.settings) await configure(words, command.settings, caller);
  try {
    const action = command.read({ words, caller, out });
    words.seal();
    return await action();
  } finally {
    out.endLive();
    await out.finish();
    await caller.close();
  }
}

async function configure(
  words: Words,
  sections: readonly Section[],
  caller: Caller,
): Promise<void> {
  const found = await caller.settings();
  words.configure(
    (name) => sections.map((section) => found.find(section, name)).find(Boolean)?.words,
  );
}

async function print(
  name: string,
  out: Output,
  answer: Answer,
  exitOf = exitOfError,
): Promise<number> {
  const { result, lines = [], error } = answer;
  if (answer.said) return answer.exitCode ?? 0;
  if (!out.json) for (const line of lines) await out.line(line);
  if (error === undefined) {
    if (out.json) await out.object(envelope(name, { result }));
    return answer.exitCode ?? 0;
  }
  const shape = toErrorShape(error);
  const remedy = remedyOf(shape);
  const { retryable } = errors[shape.code];
  if (out.json)
    await out.object(envelope(name, { result, error: { ...shape, remedy, retryable } }));
  else await out.note(shortened(shape.message), { style: 'red', advice: remedy });
  return answer.exitCode ?? exitOf(shape.code);
}
