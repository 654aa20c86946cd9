// How far a filesystem call may reach: the token decides whether Holdfast's own state and other processes are in sight,
// the call's sandbox which folders are. Always asked with the real path of what is already open, never with a name that
// could still come to mean something else.

import type { Stats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { StateFolder } from './alias.ts';
import { SystemError } from './error.ts';
import { bytePath, isWithin, type BytePath } from './uri.ts';
import type { CodexSession } from '../rpc.ts';
import { accessTo, readPolicy, type Rule, type SandboxPolicy } from '../sandbox/policy.ts';

export class Reach {
  private readonly home: StateFolder | undefined;
  private readonly rules: readonly Rule[] | undefined;

  /** `home`: out of sight, with what is in it; undefined for the admin. */
  constructor(home: string | undefined, policy: SandboxPolicy) {
    this.home = home === undefined ? undefined : new StateFolder(bytePath(home));
    this.rules = policy.rules;
  }

  /** Throws as the system would, were the forbidden part not mounted, mounted read-only, or closed. */
  check(path: BytePath, access: 'read' | 'write'): void {
    if (this.hides(path)) throw new SystemError('EACCES');
    if (!this.rules) return;
    const allowed = accessTo(this.rules, path);
    if (allowed === 'deny') throw new SystemError('EACCES');
    if (allowed === undefined) throw new SystemError('ENOENT');
    if (access === 'write' && allowed !== 'write') throw new SystemError('EROFS');
  }

  /** For what is held: that it is nothing hidden by way of a mount, or, given its `stats`, under a second name. */
  async checkHeld({ fd }: FileHandle, stats?: Stats): Promise<void> {
    if (await this.home?.holds(fd, stats)) throw new SystemError('EACCES');
  }

  /** For a name before it is looked up: what is out of sight is no way to anywhere either, and its links are not told. */
  checkName(path: BytePath): void {
    const closed = this.rules !== undefined && accessTo(this.rules, path) === 'deny';
    if (closed || this.hides(path)) throw new SystemError('EACCES');
  }

  /** For what takes a whole tree: also nothing inside of it may be forbidden. */
  checkTree(path: BytePath, access: 'read' | 'write'): void {
    this.check(path, access);
    if (this.home !== undefined && isWithin(path, this.home.path)) throw new SystemError('EACCES');
    for (const rule of this.rules ?? []) {
      if (isWithin(path, rule.path)) this.check(rule.path, access);
    }
  }

  /**
   * A scoped token sees no process by way of /proc: the server's own environment and memory are there, under the number
   * of each of its threads too, and so are those of other owners' processes.
   */
  hides(path: BytePath): boolean {
    if (this.home === undefined) return false;
    return isWithin(this.home.path, path) || /^\/proc\/(?:\d|kcore$)/.test(path);
  }
}

export async function reachOf(
  { admin, home }: CodexSession,
  sandbox: unknown,
  tmpdir: string | undefined,
): Promise<Reach> {
  return new Reach(admin ? undefined : home, await readPolicy(sandbox, tmpdir));
}
