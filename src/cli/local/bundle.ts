// What a bug report needs to know of this machine and this home: versions, checks, figures, states and logs. It has no token, no
// value of an environment variable and no output; commands, names and directories only where they are asked for.

import { closeSync, fstatSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { arch, availableParallelism, freemem, homedir, loadavg, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { VERSION } from '../../base/version.ts';
import { toErrorShape } from '../../protocol/errors.ts';
import { listAll } from '../../protocol/list-all.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import type { Caller } from '../caller.ts';
import { configPath, readConfigText } from '../settings/config-file.ts';
import type { CheckResult } from './checks.ts';
import { localServer } from './server.ts';

export interface BundleOptions {
  readonly caller: Caller;
  readonly checks: (caller: Caller) => Promise<readonly CheckResult[]>;
  /** Also what processes are called and what they run. */
  readonly commands: boolean;
  /** Processes whose last output is included. */
  readonly outputs: readonly ProcessInfo[];
}

/** The newest part of each log. */
const LOG_BYTES = 256 * 1024;
const OUTPUT_BYTES = 64 * 1024;
const MOST_PROCESSES = 500;
const SECRET_NAME = /TOKEN|SECRET|KEY|PASS|AUTH|CREDENTIAL/i;
/** A shorter value could be part of any word. */
const SECRET_CHARS = 6;

/** The whole text, a section after the other. A section that fails says why: the rest may be worth more. */
export async function bundleText(options: BundleOptions): Promise<string> {
  const { caller, outputs } = options;
  const { home } = caller;
  const sections: [string, () => unknown][] = [
    ['about', about],
    ['checks', () => options.checks(caller)],
    ['keeper', () => keeperSection(caller)],
    ['server', () => serverSection(home)],
    ['settings', () => settingsSection(caller)],
    ['files', () => filesOf(home)],
    ['processes', () => processesSection(options)],
    ...['keeper.log.1', 'keeper.log', 'server.log.1', 'server.log'].map(
      (name): [string, () => unknown] => [name, () => tailOf(join(home, name))],
    ),
    ...outputs.map((process): [string, () => unknown] => [
      `output of ${process.id}`,
      () => outputOf(caller, process),
    ]),
  ];
  const texts: string[] = [];
  for (const [name, find] of sections) texts.push(`== ${name}\n${await textOf(find)}\n`);
  return withoutSecrets(texts.join('\n'), caller.env);
}

async function textOf(find: () => unknown): Promise<string> {
  try {
    const found = await find();
    return typeof found === 'string' ? found : JSON.stringify(found, undefined, 1);
  } catch (error) {
    return `cannot be found out: ${toErrorShape(error).message}`;
  }
}

function about(): object {
  return {
    holdfast: VERSION,
    node: process.version,
    kernel: release(),
    architecture: arch(),
    processors: availableParallelism(),
    load: loadavg().map((each) => Math.round(each * 100) / 100),
    memoryBytes: { total: totalmem(), free: freemem() },
    time: new Date().toISOString(),
  };
}

async function keeperSection(caller: Caller): Promise<unknown> {
  const host = await caller.running();
  if (!host) return 'not running';
  const { sees } = caller;
  const { keeper } = host;
  return {
    protocol: keeper.protocol,
    health: await host.health(sees, {}),
    limits: await host.limits(sees, {}),
    enforcement: await host.enforcement(sees, {}),
    owners: await host.owners(sees, {}),
  };
}

async function serverSection(home: string): Promise<unknown> {
  const server = await localServer(home);
  if (!server) return 'not running';
  const { runningServer } = await import('../../server/server-lock.ts');
  const again = runningServer(home)?.again ?? [];
  // An option's value may be an address with a secret in it.
  const options = again.flatMap((word) => /^--[\w-]+/.exec(word)?.[0] ?? []);
  return { ...server, options };
}

/** What is set, by name: values may be secrets. */
async function settingsSection({ home, env }: Caller): Promise<object> {
  const variables = Object.keys(env).filter((name) =>
    /^(?:HOLDFAST|OTEL|NODE|NPM_CONFIG|XDG)_/i.test(name),
  );
  const text = readConfigText(configPath(home));
  if (text === undefined) return { variables: variables.sort() };
  const { parse } = await import('smol-toml');
  try {
    const keys = Object.entries(parse(text)).map(([section, rows]) => [
      section,
      Object.keys(rows as object),
    ]);
    return { variables: variables.sort(), config: Object.fromEntries(keys) as object };
  } catch {
    return { variables: variables.sort(), config: 'cannot be parsed' };
  }
}

function filesOf(home: string): unknown {
  const rows = readdirSync(home, { withFileTypes: true }).map((entry) => {
    const path = join(home, entry.name);
    if (entry.isDirectory()) return { name: `${entry.name}/`, entries: readdirSync(path).length };
    const { size, mode, mtime } = statSync(path);
    return { name: entry.name, size, mode: (mode & 0o7777).toString(8), changed: mtime };
  });
  return rows.map((row) => JSON.stringify(row)).join('\n');
}

async function processesSection({ caller, commands }: BundleOptions): Promise<unknown> {
  const host = await caller.running();
  if (!host) return 'not known: no keeper runs';
  const all = await listAll((page) => host.list(caller.sees, page));
  const rows = all.slice(0, MOST_PROCESSES).map((each) => JSON.stringify(rowOf(each, commands)));
  return [`${all.length} processes`, ...rows].join('\n');
}

/** What a caller wrote is left out unless it is asked for. */
function rowOf(process: ProcessInfo, commands: boolean): object {
  const { command, argv, cwd, name, key, labels, confinement, ...facts } = process;
  if (commands) return { ...facts, command, cwd, name };
  const named = Object.keys(labels ?? {});
  return {
    ...facts,
    argumentCount: argv.length,
    hasKey: key !== undefined,
    labels: named,
    confined: confinement !== undefined,
  };
}

function tailOf(path: string): string {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch {
    return 'none';
  }
  try {
    const { size } = fstatSync(fd);
    const from = Math.max(0, size - LOG_BYTES);
    const bytes = Buffer.alloc(size - from);
    const read = readSync(fd, bytes, 0, bytes.length, from);
    const text = bytes.toString('utf8', 0, read);
    return from === 0 ? text : `(${from} bytes before this)\n${text.slice(text.indexOf('\n') + 1)}`;
  } finally {
    closeSync(fd);
  }
}

async function outputOf(caller: Caller, { owner, id, bytes }: ProcessInfo): Promise<string> {
  const host = await caller.host();
  const offset = Math.max(0, bytes.total - OUTPUT_BYTES);
  const range = await host.range(owner, { id, offset, maxBytes: OUTPUT_BYTES });
  return range.bytes.toString();
}

/** A second net below sections that are free of secrets: an error message may have repeated one. */
function withoutSecrets(text: string, env: NodeJS.ProcessEnv): string {
  let safe = text
    .replaceAll(/\b(?:hf|e2b)_[\w-]{16,}/g, '[token]')
    .replaceAll(/\b(Bearer|Basic) +[\w.~+/=-]{8,}/gi, '$1 [token]')
    .replaceAll(/(\w+:\/\/)[^\s/@"]+@/g, '$1[password]@');
  for (const [name, value] of Object.entries(env))
    if (value !== undefined && value.length >= SECRET_CHARS && SECRET_NAME.test(name))
      safe = safe.replaceAll(value, `[value of ${name}]`);
  const own = homedir();
  return own.length > 1 ? safe.replaceAll(own, '~') : safe;
}
