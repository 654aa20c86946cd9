// The `tty` commands: finds the command, runs it, prints the answer as agent-tty would, and returns the exit code.

import { once } from 'node:events';
import { helpOf, type Options } from '../arguments/command.ts';
import { nearest } from '../arguments/nearest.ts';
import { optionWords } from '../arguments/parse-options.ts';
import type { OutputStream } from '../output/output.ts';
import { quote, quoteLine, shortened, visible } from '../output/terminal-text.ts';
import { PEER, TtyCall, ttyProgram, type TtyCommand, type TtyOptions } from './command.ts';
import { failure, success, TtyError, ttyError } from './envelope.ts';
import { SettingsError } from './settings.ts';

type Load = () => Promise<TtyCommand>;

const table: ReadonlyMap<string, Load> = new Map<string, Load>([
  ['create', async () => (await import('./commands/lifecycle.ts')).create],
  ['list', async () => (await import('./commands/lifecycle.ts')).list],
  ['inspect', async () => (await import('./commands/lifecycle.ts')).inspect],
  ['run', async () => (await import('./commands/input.ts')).run],
  ['type', async () => (await import('./commands/input.ts')).type],
  ['paste', async () => (await import('./commands/input.ts')).paste],
  ['send-keys', async () => (await import('./commands/input.ts')).sendKeys],
  ['batch', async () => (await import('./commands/batch.ts')).batch],
  ['mark', async () => (await import('./commands/input.ts')).mark],
  ['resize', async () => (await import('./commands/input.ts')).resize],
  ['signal', async () => (await import('./commands/input.ts')).signal],
  ['wait', async () => (await import('./commands/look.ts')).wait],
  ['snapshot', async () => (await import('./commands/look.ts')).snapshot],
  ['screenshot', async () => (await import('./commands/picture.ts')).screenshot],
  ['record export', async () => (await import('./commands/picture.ts')).recordExport],
  ['destroy', async () => (await import('./commands/lifecycle.ts')).destroy],
  ['gc', async () => (await import('./commands/gc.ts')).gc],
  ['home list', async () => (await import('./commands/home.ts')).homeList],
  ['home forget', async () => (await import('./commands/home.ts')).homeForget],
  ['doctor', async () => (await import('./commands/doctor.ts')).doctor],
  ['skills list', async () => (await import('./commands/skills.ts')).skillsList],
  ['skills get', async () => (await import('./commands/skills.ts')).skillsGet],
  ['skills path', async () => (await import('./commands/skills.ts')).skillsPath],
  ['version', async () => (await import('./commands/version.ts')).version],
  ['dashboard', async () => (await import('./commands/dashboard.ts')).dashboard],
]);

/** For completion. */
export async function ttyCommands(): Promise<TtyCommand[]> {
  return Promise.all(Array.from(table.values(), (load) => load()));
}

/** The first words of commands of two words. */
const groups = ['record', 'home', 'skills'];
const aliases: Readonly<Record<string, string>> = { ls: 'list', d: 'dashboard' };

/** Returns the exit code. */
export async function ttyMain(args: readonly string[], options: TtyOptions): Promise<number> {
  const { stdout, stderr } = options;
  const program = ttyProgram(options.program);
  const { name, rest } = commandOf(args, program.options);
  const command = await table.get(name)?.();
  const given = optionWords(rest, { ...command?.options, ...program.options });
  const json = given.includes('--json');
  const asksHelp = given.includes('--help') || given.includes('-h');
  if (command && asksHelp) return send(stdout, `${helpOf(command, program).join('\n')}\n`);
  if (name === '' || name === 'help' || asksHelp) {
    await send(stdout, helpText(options.program));
    return name === '' && !asksHelp ? 2 : 0;
  }
  try {
    if (!command) throw unknownCommand(name);
    const { result, lines = [], exitCode = 0, note } = await perform(command, rest, options);
    const fit = command.printsText ? (stdout.isTTY ? visible : String) : quoteLine;
    await send(
      stdout,
      json ? success(name, result) : lines.map((line) => `${fit(line)}\n`).join(''),
    );
    if (note !== undefined && !json) await send(stderr, `${quote(note)}\n`);
    return exitCode;
  } catch (thrown) {
    const error = ttyError(thrown);
    if (json) await send(stdout, failure(error instanceof SettingsError ? PEER : name, error));
    else await send(stderr, `${error.code}: ${quote(shortened(error.message))}\n`);
    return error.exit;
  }
}

async function perform(command: TtyCommand, args: readonly string[], options: TtyOptions) {
  const call = new TtyCall(command, args, options);
  const { caller, settings } = call;
  try {
    if (settings.logLevel === 'debug') {
      const facts = `command ${command.name}, home ${caller.home}, profile ${settings.profile}`;
      const line = `[${options.program}] debug: resolved command context: ${facts}`;
      await send(options.stderr, `${quote(line)}\n`);
    }
    return await command.run(call);
  } finally {
    await caller.close();
  }
}

/** Names what was probably meant; of two words either may be wrong. */
function unknownCommand(name: string): TtyError {
  const [first = '', second] = name.split(' ');
  const among = [...table.keys(), 'help'];
  if (second === undefined && groups.includes(first)) {
    const choices = among.filter((each) => each.startsWith(`${first} `)).join(', ');
    return new TtyError('INVALID_INPUT', `${first}: give one of ${choices}.`);
  }
  const names = second === undefined ? among.map((each) => each.split(' ', 1)[0] ?? '') : among;
  const near = nearest(name, [...new Set(names)]);
  const hint = near === undefined ? '' : ` (Did you mean ${near}?)`;
  return new TtyError('INVALID_INPUT', `unknown command '${name.slice(0, 40)}'${hint}`);
}

/** Options of every command may stand before it, and between its two words. */
function commandOf(args: readonly string[], known: Options): { name: string; rest: string[] } {
  const rest = [...args];
  const take = (): string => {
    const at = firstWord(rest, known);
    return at < 0 ? '' : (rest.splice(at, 1)[0] ?? '');
  };
  const first = take();
  const name = groups.includes(first) ? `${first} ${take()}`.trimEnd() : (aliases[first] ?? first);
  return { name, rest };
}

/** Where the first word that is no option stands; -1 when there is none before "--". */
function firstWord(args: readonly string[], known: Options): number {
  for (let at = 0; at < args.length && args[at] !== '--'; at += 1) {
    const word = args[at] ?? '';
    if (!word.startsWith('-')) return at;
    if (!word.includes('=') && known[word.replace(/^--/, '')]?.type === 'string') at += 1;
  }
  return -1;
}

async function send(stream: OutputStream, text: string): Promise<number> {
  if (!stream.write(text)) await once(stream, 'drain');
  return 0;
}

function helpText(program: string): string {
  const names = Array.from(table.keys());
  return `${program} COMMAND [--json]\n\n  Begin with "${program} skills get agent-tty": how to drive a terminal, on one page.\n\n  ${names.join(', ')}\n\n  "${program} COMMAND --help" explains one.\n`;
}
