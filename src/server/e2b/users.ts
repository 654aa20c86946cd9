// The user that an E2B call acts as. Processes and files belong to the user of this server, so only that name is accepted,
// and "user", E2B's default.

import { readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { homedir, userInfo } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { E2bError } from './errors.ts';
import { invalid } from './messages.ts';

const DEFAULT_USER = 'user';

export interface OwnUser {
  readonly name: string;
  readonly home: string;
}

export function ownUser(): OwnUser {
  return { name: userInfo().username, home: homedir() };
}

export function checkBasicUser({ authorization }: IncomingHttpHeaders): void {
  const [, encoded] = /^Basic ([\w+/=-]*)$/i.exec(authorization ?? '') ?? [];
  if (encoded === undefined) return;
  checkUser(Buffer.from(encoded, 'base64').toString('utf8').split(':', 1)[0] ?? '');
}

export function checkUser(name: string): void {
  if (name === '' || name === DEFAULT_USER || name === userInfo().username) return;
  const known = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .some((line) => line.startsWith(`${name}:`));
  if (!known) throw new E2bError('unauthenticated', `invalid username: '${name}'`);
  const own = userInfo().username;
  const problem = `this server runs as '${own}' and cannot act as '${name}'`;
  throw new E2bError('permission_denied', problem);
}

/** Relative paths and "~" begin in the home directory. */
export function expandPath(path: string, fallback: string): string {
  const { home } = ownUser();
  if (path === '') return fallback;
  if (path.includes('\0')) throw invalid('the path has a NUL byte');
  if (path === '~' || path.startsWith('~/')) return join(home, path.slice(1));
  if (path.startsWith('~'))
    throw invalid(`failed to expand path '${path}': the home of other users is not known`);
  return isAbsolute(path) ? resolve(path) : resolve(home, path);
}
