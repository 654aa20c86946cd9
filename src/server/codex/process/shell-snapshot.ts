// Shell snapshots: what a login shell's profiles define, captured once and given to the commands that follow, so that they
// need not read the profiles again. Functions and aliases travel in variables of the command's environment, exported
// variables as such; nothing of it is written down. Whatever goes wrong, the plain command runs.

import { execFile } from 'node:child_process';
import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import { allowedBy, environmentOf, settingsOf } from './env-policy.ts';
import { object } from '../fs/params.ts';
import { invalid, type Fields } from '../params.ts';
import type { StartAsked } from './start.ts';

export interface SnapshotAsked {
  readonly scopeId: string;
  readonly shell: { readonly name: string; readonly path: string };
}

/** The peer's numbers. */
const MOST_SCOPE_BYTES = 256;
const MOST_SNAPSHOTS = 16;
const CAPTURE_MS = 10_000;
const MOST_CAPTURED_BYTES = 512 * 1024;

export function snapshotAsked(fields: Fields): SnapshotAsked | undefined {
  if (!fields.has('shellSnapshot')) return undefined;
  const asked = object(fields, 'shellSnapshot', 'ShellSnapshotRequest');
  const scopeId = asked.text('scopeId');
  const shell = object(asked, 'shell', 'ShellInfo');
  const named = { name: shell.text('name'), path: shell.text('path') };
  if (scopeId === '' || Buffer.byteLength(scopeId) > MOST_SCOPE_BYTES)
    throw invalid(`shell snapshot scope must be non-empty and at most ${MOST_SCOPE_BYTES} bytes`);
  return { scopeId, shell: named };
}

/** Confines a start as its sandbox asks. */
type Confine = (asked: StartAsked) => Promise<Pick<StartAsked, 'spec'>>;

interface Snapshot {
  /** Defines functions and aliases when it is evaluated. */
  readonly script: string;
  readonly exported: ReadonlyMap<string, string>;
}

export class ShellSnapshots {
  private readonly own: Readonly<Record<string, string | undefined>>;
  private readonly confine: Confine;
  /** The least recently used first. What could not be captured is remembered too: it may have taken its whole time. */
  private readonly known = new Map<string, Promise<Snapshot | undefined>>();

  constructor(own: Readonly<Record<string, string | undefined>>, confine: Confine) {
    this.own = own;
    this.confine = confine;
  }

  /** The same start with the state restored, if it is one of a login shell's script. */
  async applied(asked: StartAsked): Promise<StartAsked> {
    const { snapshot, spec, login } = asked;
    const [program, flag, script, ...more] = spec.argv ?? [];
    if (!snapshot || program === undefined || script === undefined) return asked;
    const isLogin = program === snapshot.shell.path && flag === '-lc' && more.length === 0;
    if (!isLogin || !Object.hasOwn(LISTINGS, snapshot.shell.name)) return asked;
    const found = await this.find(asked, snapshot);
    if (!found) return asked;
    const exported = allowedBy(login.policy, found.exported);
    const pieces = piecesOf(found.script);
    const names = pieces.map((_, index) => `HOLDFAST_SHELL_${index}`);
    const restoring = `eval "${names.map((name) => `$${name}`).join('')}"; unset ${names.join(' ')}\n`;
    return {
      ...asked,
      spec: {
        ...spec,
        argv: [program, '-c', names.length === 0 ? script : restoring + script],
        env: {
          ...Object.fromEntries(exported),
          ...settingsOf(login.policy),
          ...environmentOf(login.given, undefined, {}),
          ...Object.fromEntries(names.map((name, index) => [name, pieces[index] ?? ''])),
        },
      },
    };
  }

  private find(
    asked: StartAsked,
    { scopeId, shell }: SnapshotAsked,
  ): Promise<Snapshot | undefined> {
    const { login, sandbox, spec } = asked;
    const around = login.policy ?? login.given;
    const key = JSON.stringify([scopeId, shell, spec.cwd, around, sandbox]);
    const found = this.known.get(key) ?? this.capture(asked, shell);
    this.known.delete(key);
    this.known.set(key, found);
    const [oldest] = this.known.keys();
    if (this.known.size > MOST_SNAPSHOTS && oldest !== undefined) this.known.delete(oldest);
    return found;
  }

  private async capture(
    asked: StartAsked,
    { name, path }: SnapshotAsked['shell'],
  ): Promise<Snapshot | undefined> {
    const { login, spec } = asked;
    const mark = randomBytes(16).toString('hex');
    const env =
      login.policy === undefined || login.policy === null
        ? login.given
        : environmentOf({}, login.policy, this.own);
    const argv = [path, '-lc', `builtin printf '%s\\0' ${mark}; ${LISTINGS[name]}`];
    const confined = await this.confine({ ...asked, spec: { ...spec, argv, env } });
    return snapshotIn(await outputOf(confined.spec), mark);
  }
}

/** Functions, aliases and variables, with a NUL between: none of them holds one. */
const listing = (functions: string, aliases: string): string =>
  `builtin ${functions}; builtin printf '\\0'; builtin ${aliases}; builtin printf '\\0'; command env -0`;
const LISTINGS: Readonly<Record<string, string>> = {
  bash: listing('declare -f', 'alias -p'),
  zsh: listing('typeset -f', 'alias -L'),
};

/** Undefined when it fails, takes too long or prints too much. */
function outputOf({ argv = [], cwd, env = {} }: StartAsked['spec']): Promise<Buffer | undefined> {
  const [program = '', ...words] = argv;
  const options = {
    cwd,
    env,
    timeout: CAPTURE_MS,
    killSignal: 'SIGKILL' as const,
    maxBuffer: MOST_CAPTURED_BYTES,
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

/** The profiles may have printed something before the mark. */
function snapshotIn(output: Buffer | undefined, mark: string): Snapshot | undefined {
  if (!output || !isUtf8(output)) return undefined;
  const [, captured] = output.toString('utf8').split(`${mark}\0`);
  const [functions, aliases, ...variables] = captured?.split('\0') ?? [];
  if (functions === undefined || aliases === undefined) return undefined;
  const exported = new Map<string, string>();
  for (const variable of variables) {
    const at = variable.indexOf('=');
    if (at > 0 && !OF_THE_SHELL.has(variable.slice(0, at)))
      exported.set(variable.slice(0, at), variable.slice(at + 1));
  }
  // Aliases last: a shell that expands them would expand them in the functions.
  return { script: functions + aliases, exported };
}

/** Each shell has its own. */
const OF_THE_SHELL = new Set(['PWD', 'OLDPWD', 'SHLVL', '_']);

/** The kernel takes 128 KiB in one variable; a unit of a string is at most three bytes of UTF-8. */
const PIECE_UNITS = 40_000;

function piecesOf(script: string): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < script.length;) {
    let end = Math.min(script.length, at + PIECE_UNITS);
    // Not between the halves of a character.
    if ((script.codePointAt(end - 1) ?? 0) > 0xffff) end -= 1;
    pieces.push(script.slice(at, end));
    at = end;
  }
  return pieces;
}
