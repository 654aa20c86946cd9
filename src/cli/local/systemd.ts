// systemd's programs: each is asked, and none is assumed to be there.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { basename, join } from 'node:path';
import { HoldfastError } from '../../protocol/errors.ts';

/** Stopping a service waits for the end of its processes. */
const PATIENCE_MS = 150_000;

interface Asked {
  readonly ok: boolean;
  /** Stdout, or the first line of what went wrong. */
  readonly text: string;
}

/** Undefined when there is no such program. */
function ask(env: NodeJS.ProcessEnv, file: string, ...args: string[]): Asked | undefined {
  const done = spawnSync(file, args, { env, encoding: 'utf8', timeout: PATIENCE_MS });
  if (done.error && (done.error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
  if (done.status === 0) return { ok: true, text: done.stdout };
  const said = done.error?.message ?? `${done.stderr}${done.stdout}`.trim();
  return { ok: false, text: said.split('\n')[0] ?? '' };
}

/** Throws where there is no systemd, or where it does not answer this user. */
export function requireManager(env: NodeJS.ProcessEnv, remedy: string): void {
  // Answers with the environment of the user's manager, whatever state that is in.
  const asked = ask(env, 'systemctl', '--user', 'show-environment');
  if (asked?.ok) return;
  const why = asked
    ? `systemd does not answer this user (${asked.text})`
    : 'this machine has no systemd: systemctl is not on the PATH';
  const login = asked ? 'Log in as this user itself, not with su or sudo' : '';
  throw new HoldfastError('unsupported', `No service can be managed: ${why}.`, {
    remedy: [login, remedy].filter(Boolean).join(', or '),
  });
}

/** Throws with systemd's own words. */
export function manage(env: NodeJS.ProcessEnv, ...args: string[]): string {
  const asked = ask(env, 'systemctl', '--user', ...args);
  if (asked?.ok) return asked.text;
  const problem = `systemctl --user ${args.join(' ')}: ${asked?.text ?? 'there is no systemctl'}`;
  throw new HoldfastError('unsupported', `${problem.replace(/\.$/, '')}.`);
}

/** "active (running), pid 12"; undefined where systemd does not answer. */
export function stateOf(
  env: NodeJS.ProcessEnv,
  name: string,
): Readonly<Record<'active' | 'enabled' | 'pid', string>> | undefined {
  const names = ['ActiveState', 'SubState', 'UnitFileState', 'MainPID'];
  const asked = ask(env, 'systemctl', '--user', 'show', `${name}.service`, `-p${names.join(',')}`);
  if (!asked?.ok) return undefined;
  const value = (key: string): string =>
    new RegExp(`^${key}=(.*)$`, 'm').exec(asked.text)?.[1] ?? '';
  return {
    active: `${value('ActiveState')} (${value('SubState')})`,
    enabled: value('UnitFileState') || 'not installed',
    pid: value('MainPID'),
  };
}

/** Whether the user's services run without a login; undefined where nobody knows. */
export function lingers(env: NodeJS.ProcessEnv): boolean | undefined {
  const asked = ask(env, 'loginctl', 'show-user', userInfo().username, '-pLinger', '--value');
  return asked?.ok ? asked.text.trim() === 'yes' : undefined;
}

/** What systemd-analyze finds wrong with a unit; undefined when nothing is, or when it is not installed. */
export async function problemOfUnit(
  env: NodeJS.ProcessEnv,
  file: string,
  text: string,
): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-unit-'));
  try {
    const copy = join(folder, basename(file));
    writeFileSync(copy, text);
    const asked = ask(env, 'systemd-analyze', '--user', '--man=no', 'verify', copy);
    // Other units of this user may be wrong, too.
    return asked?.ok === false && asked.text.includes(basename(file)) ? asked.text : undefined;
  } finally {
    await rm(folder, { recursive: true });
  }
}
