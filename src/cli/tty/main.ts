// The `tty` commands: finds the one that is meant, prints its answer as agent-tty would, and answers its exit code.

import { VERSION } from '../../base/version.ts';
import { Caller } from '../caller.ts';
import { globalFlags, TtyCall, type TtyCommand } from './command.ts';
import { failure, success, TtyError, ttyError } from './envelope.ts';

type Load = () => Promise<TtyCommand>;

const table: ReadonlyMap<string, Load> = new Map<string, Load>([
  ['create', async () => (await import('./lifecycle.ts')).create],
  ['list', async () => (await import('./lifecycle.ts')).list],
  ['inspect', async () => (await import('./lifecycle.ts')).inspect],
  ['run', async () => (await import('./input.ts')).run],
  ['type', async () => (await import('./input.ts')).type],
  ['paste', async () => (await import('./input.ts')).paste],
  ['send-keys', async () => (await import('./input.ts')).sendKeys],
  ['batch', async () => (await import('./batch.ts')).batch],
  ['mark', async () => (await import('./input.ts')).mark],
  ['resize', async () => (await import('./input.ts')).resize],
  ['signal', async () => (await import('./input.ts')).signal],
  ['wait', async () => (await import('./look.ts')).wait],
  ['snapshot', async () => (await import('./look.ts')).snapshot],
  ['screenshot', async () => (await import('./picture.ts')).screenshot],
  ['record export', async () => (await import('./picture.ts')).recordExport],
  ['destroy', async () => (await import('./lifecycle.ts')).destroy],
  ['gc', async () => (await import('./gc.ts')).gc],
  ['home list', async () => (await import('./home.ts')).homeList],
  ['home forget', async () => (await import('./home.ts')).homeForget],
  ['doctor', async () => (await import('./doctor.ts')).doctor],
  ['skills list', async () => (await import('./skills.ts')).skillsList],
  ['skills get', async () => (await import('./skills.ts')).skillsGet],
  ['skills path', async () => (await import('./skills.ts')).skillsPath],
]);

/** Of two words. */
const groups = ['record', 'home', 'skills'];
const aliases: Readonly<Record<string, string>> = { ls: 'list', d: 'dashboard' };
const NO_DASHBOARD =
  'There is no dashboard: "holdfast ps" lists terminals, "holdfast attach --read-only ID" shows one.';
const PROTOCOL_VERSION = '0.1.0';

export interface TtyOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** The state directory when no flag names one. */
  readonly home?: string | undefined;
  readonly program: string;
}

/** Answers the exit code. */
export async function ttyMain(args: readonly string[], options: TtyOptions): Promise<number> {
  const json = args.includes('--json');
  const { name, rest } = commandOf(args);
  try {
    const load = table.get(name);
    if (name === 'help' || (!load && name === '')) return print(helpText(options.program));
    if (name === 'version') return version(json);
    if (name === 'dashboard') throw new TtyError('INVALID_INPUT', NO_DASHBOARD);
    if (!load) throw new TtyError('INVALID_INPUT', `There is no command "${name.slice(0, 40)}".`);
    const command = await load();
    if (rest.includes('--help')) return print(helpOf(command, options.program));
    const { result, lines = [], exitCode = 0 } = await perform(command, rest, options);
    await print(json ? success(name, result) : lines.map((line) => `${line}\n`).join(''));
    return exitCode;
  } catch (thrown) {
    const error = ttyError(thrown);
    if (json) await print(failure(name, error));
    else process.stderr.write(`${error.code}: ${error.message}\n`);
    return error.exit;
  }
}

async function perform(command: TtyCommand, args: readonly string[], options: TtyOptions) {
  const { env, cwd } = options;
  const home = flagValue(args, '--home') ?? options.home;
  const caller = new Caller({ env, cwd, home, owner: undefined });
  try {
    return await command.run(new TtyCall(command, args, caller));
  } finally {
    await caller.close();
  }
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

async function version(json: boolean): Promise<number> {
  const { version: node, platform, arch } = process;
  const result = {
    cliVersion: VERSION,
    protocolVersion: PROTOCOL_VERSION,
    rendererBackends: ['xterm-headless'],
    runtime: { node, platform, arch },
  };
  return print(json ? success('version', result) : `${VERSION}\n`);
}

function print(text: string): Promise<number> {
  return new Promise((resolve) => process.stdout.write(text, () => resolve(0)));
}

function helpOf({ name, usage, summary, flags }: TtyCommand, program: string): string {
  const rows = Object.entries({ ...flags, ...globalFlags }).map(
    ([flag, { about }]) => `  --${flag.padEnd(20)} ${about}`,
  );
  return `${program} ${name} ${usage}\n\n  ${summary}\n\n${rows.join('\n')}\n`;
}

function helpText(program: string): string {
  const names = [...table.keys(), 'version'].join(', ');
  return `${program} COMMAND [--json]\n\n  Begin with "${program} skills get agent-tty": how to drive a terminal, on one page.\n\n  ${names}\n\n  "${program} COMMAND --help" tells more.\n`;
}
