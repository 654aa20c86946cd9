// What a filesystem call may reach. The token decides about Holdfast's own state and other processes, the sandbox of
// the call about folders. It is always asked with the real path of an open file, never with a name that could change
// its meaning.

import type { Stats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { isOfMachine } from '../../../host/limits/file-rules.ts';
import { StateFolder } from './alias.ts';
import { SystemError } from './error.ts';
import { bytePath, isWithin, type BytePath } from './uri.ts';
import type { CodexSession } from '../rpc.ts';
import { accessTo, readPolicy, type Rule, type SandboxPolicy } from '../sandbox/policy.ts';
import { tokenRules } from './token-rules.ts';

export class AccessPolicy {
  private readonly home: StateFolder | undefined;
  /** Each has to allow it. */
  private readonly layers: readonly (readonly Rule[])[];

  /** `home`: hidden with everything in it; undefined for the admin. `ofToken`: what its token allows. */
  constructor(home: string | undefined, policy: SandboxPolicy, ofToken?: readonly Rule[]) {
    this.home = home === undefined ? undefined : new StateFolder(bytePath(home));
    this.layers = [policy.rules, ofToken].flatMap((rules) => (rules ? [rules] : []));
  }

  /** Throws the error that the system would give if the path were not mounted, read-only, or forbidden. */
  check(path: BytePath, access: 'read' | 'write'): void {
    if (this.hides(path)) throw new SystemError('EACCES');
    if (this.home !== undefined && access === 'write' && isOfMachine(path))
      throw new SystemError('EROFS');
    for (const rules of this.layers) {
      const allowed = accessTo(rules, path);
      if (allowed === 'deny') throw new SystemError('EACCES');
      if (allowed === undefined) throw new SystemError('ENOENT');
      if (access === 'write' && allowed !== 'write') throw new SystemError('EROFS');
    }
  }

  /** For an open file: throws if it is hidden but reached by a mount or, given its `stats`, by a second name. */
  async checkOpened({ fd }: FileHandle, stats?: Stats): Promise<void> {
    if (await this.home?.contains(fd, stats)) throw new SystemError('EACCES');
  }

  /** For a name before it is opened: a hidden path leads nowhere, and its links are not revealed. */
  checkName(path: BytePath): void {
    const closed = this.layers.some((rules) => accessTo(rules, path) === 'deny');
    if (closed || this.hides(path)) throw new SystemError('EACCES');
  }

  /** For operations on a whole tree: nothing inside may be forbidden either. */
  checkTree(path: BytePath, access: 'read' | 'write'): void {
    this.check(path, access);
    if (this.home !== undefined && isWithin(path, this.home.path)) throw new SystemError('EACCES');
    for (const rule of this.layers.flat()) {
      if (isWithin(path, rule.path)) this.check(rule.path, access);
    }
  }

  /**
   * A scoped token sees no process in /proc: there are the environment and memory of the server, under each thread's
   * number too, and those of other owners' processes. Nor does it see devices: disks have every file.
   */
  hides(path: BytePath): boolean {
    if (this.home === undefined) return false;
    if (isWithin(this.home.path, path) || /^\/proc\/(?:\d|kcore$)/.test(path)) return true;
    return path.startsWith('/dev/') && isOfMachine(path);
  }
}

export async function accessPolicyOf(
  session: CodexSession,
  sandbox: unknown,
  tmpdir: string | undefined,
): Promise<AccessPolicy> {
  const asked = await readPolicy(sandbox, tmpdir);
  const home = session.admin ? undefined : session.home;
  return new AccessPolicy(home, asked, await tokenRules(session.policy()));
}
