// Shell snapshots: what a login shell's profiles define, captured once and given to later commands, which then need not
// read the profiles. Functions and aliases travel in environment variables, exported variables as themselves; nothing
// is stored on disk. If anything fails, the plain command runs.

import { execFile } from 'node:child_process';
import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import { filterByPolicy, buildEnvironment, variablesSetBy } from './env-policy.ts';
import { invalid, type Fields } from '../params.ts';
import type { StartRequest } from './start.ts';

export interface SnapshotRequest {
  readonly scopeId: string;
  readonly shell: { readonly name: string; readonly path: string };
}

/** The limits of codex's server. */
const MAX_SCOPE_BYTES = 256;
const MAX_SNAPSHOTS = 16;
const CAPTURE_MS = 10_000;
const MAX_CAPTURED_BYTES = 512 * 1024;

export function parseSnapshot(fields: Fields): SnapshotRequest | undefined {
  if (!fields.has('shellSnapshot')) return undefined;
  const request = fields.object('shellSnapshot', 'ShellSnapshotRequest');
  const scopeId = request.text('scopeId');
  const shell = request.object('shell', 'ShellInfo');
  const named = { name: shell.text('name'), path: shell.text('path') };
  if (scopeId === '' || Buffer.byteLength(scopeId) > MAX_SCOPE_BYTES)
    throw invalid(`shell snapshot scope must be non-empty and at most ${MAX_SCOPE_BYTES} bytes`);
  return { scopeId, shell: named };
}

/** Applies the sandbox of a start. */
type Confine = (request: StartRequest) => Promise<Pick<StartRequest, 'spec'>>;

interface Snapshot {
  /** Defines functions and aliases when it is evaluated. */
  readonly script: string;
  readonly exported: ReadonlyMap<string, string>;
}

export class ShellSnapshots {
  private readonly own: Readonly<Record<string, string | undefined>>;
  private readonly confine: Confine;
  /** Least recently used first. Failed captures are cached too: they may have taken the whole timeout. */
  private readonly cache = new Map<string, Promise<Snapshot | undefined>>();

  constructor(own: Readonly<Record<string, string | undefined>>, confine: Confine) {
    this.own = own;
    this.confine = confine;
  }

  /** The same start with the state restored, if it runs a script in a login shell. */
  async apply(request: StartRequest): Promise<StartRequest> {
    const { snapshot, spec, login } = request;
    const [program, flag, script, ...more] = spec.argv ?? [];
    if (!snapshot || program === undefined || script === undefined) return request;
    const isLogin = program === snapshot.shell.path && flag === '-lc' && more.length === 0;
    if (!isLogin || !Object.hasOwn(LISTINGS, snapshot.shell.name)) return request;
    const found = await this.find(request, snapshot);
    if (!found) return request;
    const exported = filterByPolicy(login.policy, found.exported);
    const pieces = splitScript(found.script);
    const names = pieces.map((_, index) => `HOLDFAST_SHELL_${index}`);
    const restoring = `eval "${names.map((name) => `$${name}`).join('')}"; unset ${names.join(' ')}\n`;
    return {
      ...request,
      spec: {
        ...spec,
        argv: [program, '-c', names.length === 0 ? script : restoring + script],
        env: {
          ...Object.fromEntries(exported),
          ...variablesSetBy(login.policy),
          ...buildEnvironment(login.given, undefined, {}),
          ...Object.fromEntries(names.map((name, index) => [name, pieces[index] ?? ''])),
        },
      },
    };
  }

  private find(
    request: StartRequest,
    { scopeId, shell }: SnapshotRequest,
  ): Promise<Snapshot | undefined> {
    const { login, sandbox, spec } = request;
    const around = login.policy ?? login.given;
    const key = JSON.stringify([scopeId, shell, spec.cwd, around, sandbox]);
    const found = this.cache.get(key) ?? this.capture(request, shell);
    this.cache.delete(key);
    this.cache.set(key, found);
    const [oldest] = this.cache.keys();
    if (this.cache.size > MAX_SNAPSHOTS && oldest !== undefined) this.cache.delete(oldest);
    return found;
  }

  private async capture(
    request: StartRequest,
    { name, path }: SnapshotRequest['shell'],
  ): Promise<Snapshot | undefined> {
    const { login, spec } = request;
    const mark = randomBytes(16).toString('hex');
    const env =
      login.policy === undefined || login.policy === null
        ? login.given
        : buildEnvironment({}, login.policy, this.own);
    const argv = [path, '-lc', `builtin printf '%s\\0' ${mark}; ${LISTINGS[name]}`];
    const confined = await this.confine({ ...request, spec: { ...spec, argv, env } });
    return parseCapture(await runCaptured(confined.spec), mark);
  }
}

/** Functions, aliases and variables, separated by NUL, which none of them contains. */
const listing = (functions: string, aliases: string): string =>
  `builtin ${functions}; builtin printf '\\0'; builtin ${aliases}; builtin printf '\\0'; command env -0`;
const LISTINGS: Readonly<Record<string, string>> = {
  bash: listing('declare -f', 'alias -p'),
  zsh: listing('typeset -f', 'alias -L'),
};

/** Undefined if it fails, takes too long or prints too much. */
function runCaptured({
  argv = [],
  cwd,
  env = {},
}: StartRequest['spec']): Promise<Buffer | undefined> {
  const [program = '', ...words] = argv;
  const options = {
    cwd,
    env,
    timeout: CAPTURE_MS,
    killSignal: 'SIGKILL' as const,
    maxBuffer: MAX_CAPTURED_BYTES,
    encoding: 'buffer' as const,
  };
  return new Promise((resolve) => {
    const child = execFile(program, words, options, (error, stdout) =>
      resolve(error ? undefined : stdout),
    );
    child.stdin?.on('error', () => undefined);
    child.stdin?.end();
  });
}

/** The profiles may print something before the mark. */
function parseCapture(output: Buffer | undefined, mark: string): Snapshot | undefined {
  if (!output || !isUtf8(output)) return undefined;
  const [, captured] = output.toString('utf8').split(`${mark}\0`);
  const [functions, aliases, ...variables] = captured?.split('\0') ?? [];
  if (functions === undefined || aliases === undefined) return undefined;
  const exported = new Map<string, string>();
  for (const variable of variables) {
    const at = variable.indexOf('=');
    if (at > 0 && !SET_BY_SHELL.has(variable.slice(0, at)))
      exported.set(variable.slice(0, at), variable.slice(at + 1));
  }
  // Aliases last: a shell that expands aliases would expand them in the functions.
  return { script: functions + aliases, exported };
}

/** Each shell sets these itself. */
const SET_BY_SHELL = new Set(['PWD', 'OLDPWD', 'SHLVL', '_']);

/** The kernel accepts 128 KiB in one variable; a UTF-16 unit is at most three bytes of UTF-8. */
const PIECE_UNITS = 40_000;

function splitScript(script: string): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < script.length;) {
    let end = Math.min(script.length, at + PIECE_UNITS);
    // Never between the halves of a surrogate pair.
    if ((script.codePointAt(end - 1) ?? 0) > 0xffff) end -= 1;
    pieces.push(script.slice(at, end));
    at = end;
  }
  return pieces;
}
