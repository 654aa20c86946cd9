// The `tty` commands: finds the one that is meant, prints its answer as agent-tty would, and answers its exit code.

import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { VERSION } from '../../base/version.ts';
import { Caller, usualHome } from '../caller.ts';
import { nearest } from '../arguments/nearest.ts';
import type { OutputStream } from '../output/output.ts';
import { quote, quoteLine, shortened, visible } from '../output/terminal-text.ts';
import { knownCapabilities } from './capabilities.ts';
import { globalFlags, TtyCall, type TtyCommand } from './command.ts';
import { failure, success, TtyError, ttyError } from './envelope.ts';
import { PEER_RENDERERS, RENDERERS, settingsFrom, type Settings } from './settings.ts';

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
  ['home list', async () => (await import('./home.ts')).homeList],
  ['home forget', async () => (await import('./home.ts')).homeForget],
  ['doctor', async () => (await import('./commands/doctor.ts')).doctor],
  ['skills list', async () => (await import('./commands/skills.ts')).skillsList],
  ['skills get', async () => (await import('./commands/skills.ts')).skillsGet],
  ['skills path', async () => (await import('./commands/skills.ts')).skillsPath],
]);

/** For completion. */
export async function ttyCommands(): Promise<TtyCommand[]> {
  return Promise.all(Array.from(table.values(), (load) => load()));
}

/** Of two words. */
const groups = ['record', 'home', 'skills'];
const aliases: Readonly<Record<string, string>> = { ls: 'list', d: 'dashboard' };
const PROTOCOL_VERSION = '0.1.0';
/** Scripts that were written for it meet its exit codes and its ways. */
const PEER = 'agent-tty';

export interface TtyOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** The state directory when no flag names one. */
  readonly home?: string | undefined;
  readonly program: string;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
}

/** Answers the exit code. */
export async function ttyMain(args: readonly string[], options: TtyOptions): Promise<number> {
  // Behind "--" every word is the program's.
  const own = args.slice(0, args.includes('--') ? args.indexOf('--') : args.length);
  const json = own.includes('--json');
  const { stdout } = options;
  const print = (text: string): Promise<number> => send(stdout, text);
  const { name, rest } = commandOf(args);
  let told = name;
  try {
    const load = table.get(name);
    const asksHelp = own.includes('--help') || own.includes('-h');
    if (name === '' && !asksHelp) return await print(helpText(options.program)).then(() => 2);
    if (name === 'help' || (asksHelp && !load)) return await print(helpText(options.program));
    if (load && asksHelp) return await print(helpOf(await load(), options.program));
    told = PEER;
    const place = placeOf(own, options);
    told = name;
    await tellPlace(name, place, options);
    if (name === 'version') return await print(version(json, options));
    if (name === 'dashboard') return await print(await dashboard(json, place, options));
    if (!load) throw unknownCommand(name);
    const command = await load();
    const answer = await perform(command, rest, place, options);
    const { result, lines = [], exitCode = 0, note } = answer;
    const fit = command.printsText ? (stdout.isTTY ? visible : String) : quoteLine;
    await print(json ? success(name, result) : lines.map((line) => `${fit(line)}\n`).join(''));
    if (note !== undefined && !json) await send(options.stderr, `${quote(note)}\n`);
    return exitCode;
  } catch (thrown) {
    const error = ttyError(thrown);
    if (json) await print(failure(told, error));
    else await send(options.stderr, `${error.code}: ${quote(shortened(error.message))}\n`);
    return error.exit;
  }
}

interface Place {
  readonly isPeer: boolean;
  /** The state directory, unless it is the usual one. */
  readonly home: string | undefined;
  readonly settings: Settings;
}

/** Where the command works and what is set for it; `own` are the words that are ours to read. */
function placeOf(own: readonly string[], { env, cwd, home: usual, program }: TtyOptions): Place {
  const isPeer = program === PEER;
  const given = flagValue(own, '--home') ?? usual;
  const named = given === undefined ? undefined : resolve(cwd, given);
  const settings = settingsFrom({
    env,
    flag: (name) => flagValue(own, name),
    folder: isPeer ? (named ?? usualHome(env)) : undefined,
    renderers: isPeer ? PEER_RENDERERS : RENDERERS,
  });
  return {
    isPeer,
    home: isPeer && named !== undefined ? lockedFolder(named) : named,
    settings,
  };
}

/** One line for whoever looks for the reason why something happens elsewhere than expected. */
async function tellPlace(name: string, place: Place, options: TtyOptions): Promise<void> {
  if (place.settings.logLevel !== 'debug') return;
  const home = place.home ?? usualHome(options.env);
  const facts = `command ${name || 'none'}, home ${home}, profile ${place.settings.profile}`;
  const line = `[${options.program}] debug: resolved command context: ${facts}`;
  await send(options.stderr, `${quote(line)}\n`);
}

/** Of two words the first may be wrong, or the second. */
function unknownCommand(name: string): TtyError {
  const [first = '', second] = name.split(' ');
  const among = [...table.keys(), 'version', 'help'];
  const names = new Set(second === undefined ? among.map((each) => each.split(' ', 1)[0]) : among);
  const near = nearest(name, [...names] as string[]);
  const hint = near === undefined ? '' : ` (Did you mean ${near}?)`;
  const missing = second === undefined && groups.includes(first);
  return new TtyError(
    'INVALID_INPUT',
    missing
      ? `${first}: give one of ${among.filter((each) => each.startsWith(`${first} `)).join(', ')}.`
      : `unknown command '${name.slice(0, 40)}'${hint}`,
  );
}

async function perform(
  command: TtyCommand,
  args: readonly string[],
  place: Place,
  { env, cwd }: TtyOptions,
) {
  const caller = new Caller({ env, cwd, home: place.home, owner: undefined });
  try {
    return await command.run(new TtyCall(command, args, caller, place));
  } finally {
    await caller.close();
  }
}

/** A page in a browser instead of one in the terminal. */
async function dashboard(
  json: boolean,
  { home }: Place,
  { env, cwd }: TtyOptions,
): Promise<string> {
  const { dashboardLink } = await import('../local/dashboard-link.ts');
  const caller = new Caller({ env, cwd, home, owner: undefined });
  const link = await dashboardLink(caller.home, { env });
  return json ? success('dashboard', link) : `${link.url}\n`;
}

/** A state directory that others may look into keeps its own locked folder inside. */
function lockedFolder(home: string): string {
  const found = statSync(home, { throwIfNoEntry: false });
  const isOpen = found?.isDirectory() === true && (found.mode & 0o055) !== 0;
  // Where others may write they could put a folder of their own there: that is refused like any other.
  return isOpen && (found.mode & 0o022) === 0 ? join(home, 'holdfast') : home;
}

/** Global flags may stand before the command. */
function commandOf(args: readonly string[]): { name: string; rest: string[] } {
  let at = 0;
  while (args[at]?.startsWith('-') === true && args[at] !== '--') {
    const flag = globalFlags[(args[at] ?? '').replace(/^--/, '').split('=', 1)[0] ?? ''];
    at += flag?.type === 'string' && !(args[at] ?? '').includes('=') ? 2 : 1;
  }
  const [first = '', second = ''] = args.slice(at);
  const two = groups.includes(first);
  const name = aliases[first] ?? (two ? `${first} ${second}`.trim() : first);
  return { name, rest: [...args.slice(0, at), ...args.slice(at + (two ? 2 : 1))] };
}

function flagValue(args: readonly string[], flag: string): string | undefined {
  const at = args.indexOf(flag);
  if (at >= 0) return args[at + 1];
  return args.find((arg) => arg.startsWith(`${flag}=`))?.slice(flag.length + 1);
}

function version(json: boolean, { program, env }: TtyOptions): string {
  const { version: node, platform, arch } = process;
  const result = {
    cliVersion: VERSION,
    protocolVersion: PROTOCOL_VERSION,
    // The names that --renderer takes there; one emulator stands behind them.
    rendererBackends: program === PEER ? PEER_RENDERERS : ['xterm-headless'],
    runtime: { node, platform, arch },
    capabilities: knownCapabilities(env['PATH']),
  };
  return json ? success('version', result) : `${program} ${VERSION}\n`;
}

async function send(stream: OutputStream, text: string): Promise<number> {
  if (!stream.write(text)) await once(stream, 'drain');
  return 0;
}

function helpOf({ name, usage, summary, flags }: TtyCommand, program: string): string {
  const rows = Object.entries({ ...flags, ...globalFlags })
    .filter(([, { about }]) => !about.startsWith('accepted'))
    .map(([flag, { about, type }]) => {
      const shown = type === 'string' ? `${flag} VALUE` : flag;
      return `  --${shown.padEnd(26)} ${about}`;
    });
  return `${program} ${name} ${usage}\n\n  ${summary}\n\n${rows.join('\n')}\n`;
}

function helpText(program: string): string {
  const names = [...table.keys(), 'version'].join(', ');
  return `${program} COMMAND [--json]\n\n  Begin with "${program} skills get agent-tty": how to drive a terminal, on one page.\n\n  ${names}\n\n  "${program} COMMAND --help" tells more.\n`;
}
