// What one connection keeps longer than a call: open files and one watch. They end with the connection.

import { FileHandles } from './handles.ts';
import { errnoOf } from '../../../base/disk.ts';
import { withOpened } from './opened-path.ts';
import { accessPolicyOf, type AccessPolicy } from './access-policy.ts';
import { parentOf, type BytePath } from './uri.ts';
import { MissingWatch, type WatchedPaths } from './watch.ts';
import type { CodexSession } from '../rpc.ts';
import { withoutLinks } from '../sandbox/policy.ts';

export class Connections {
  private readonly known = new WeakMap<CodexSession, Connection>();

  of(session: CodexSession): Connection {
    let connection = this.known.get(session);
    if (!connection) {
      connection = new Connection(session);
      this.known.set(session, connection);
    }
    return connection;
  }
}

class Connection {
  readonly handles = new FileHandles();
  private readonly session: CodexSession;
  private watching: MissingWatch | undefined;
  /** Counts requested watches, so that one that was replaced while it started is dropped. */
  private requests = 0;
  private closed = false;

  constructor(session: CodexSession) {
    this.session = session;
    session.onClose(() => {
      this.closed = true;
      this.watching?.stop();
      void this.handles.closeAll();
    });
  }

  /** Replaces the previous watch. False: the paths are not as described, are hidden, or cannot be watched. */
  async watch(watchId: number, paths: WatchedPaths | undefined): Promise<boolean> {
    this.watching?.stop();
    this.watching = undefined;
    this.requests += 1;
    const turn = this.requests;
    if (!paths || (await this.isHidden(paths))) return false;
    const watching = await MissingWatch.start(paths, () =>
      this.session.notify('fs/missingChanged', { watchId }),
    );
    if (turn !== this.requests || this.closed) watching?.stop();
    else this.watching = watching;
    return watching !== undefined;
  }

  private async isHidden({ missing, present }: WatchedPaths): Promise<boolean> {
    if (this.session.admin) return false;
    const access = await accessPolicyOf(this.session, undefined, undefined);
    for (const path of present === undefined ? missing : [...missing, present]) {
      if (access.hides(path) || (await this.leadsToHidden(await withoutLinks(path), access)))
        return true;
    }
    return false;
  }

  /** Checks the part of the path that exists. */
  private async leadsToHidden(path: BytePath, access: AccessPolicy): Promise<boolean> {
    if (access.hides(path)) return true;
    try {
      return await withOpened(path, { access, follow: true }, async () => false);
    } catch (error) {
      const code = errnoOf(error);
      if (code === undefined) throw error;
      const missing = code === 'ENOENT' || code === 'ENOTDIR';
      return !missing || this.leadsToHidden(parentOf(path), access);
    }
  }
}
