// What one connection holds of the disk for longer than a call: its open files and its one watch. All of it ends with the
// connection.

import { FileHandles } from './handles.ts';
import { errnoOf } from '../../../base/disk.ts';
import { withPlace } from './place.ts';
import { reachOf, type Reach } from './reach.ts';
import { parentOf, type BytePath } from './uri.ts';
import { MissingWatch, type Wanted } from './watch.ts';
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
  /** Counts the watches asked for: one that was replaced while it started is given up. */
  private asked = 0;
  private closed = false;

  constructor(session: CodexSession) {
    this.session = session;
    session.onClose(() => {
      this.closed = true;
      this.watching?.stop();
      void this.handles.closeAll();
    });
  }

  /** Replaces the watch there was, if only by none. False: things are not as described, out of sight, or cannot be watched. */
  async watch(watchId: number, wanted: Wanted | undefined): Promise<boolean> {
    this.watching?.stop();
    this.watching = undefined;
    this.asked += 1;
    const turn = this.asked;
    if (!wanted || (await this.hides(wanted))) return false;
    const watching = await MissingWatch.start(wanted, () =>
      this.session.notify('fs/missingChanged', { watchId }),
    );
    if (turn !== this.asked || this.closed) watching?.stop();
    else this.watching = watching;
    return watching !== undefined;
  }

  private async hides({ missing, present }: Wanted): Promise<boolean> {
    if (this.session.admin) return false;
    const reach = await reachOf(this.session, undefined, undefined);
    for (const path of present === undefined ? missing : [...missing, present]) {
      if (reach.hides(path) || (await this.leadsToHidden(await withoutLinks(path), reach)))
        return true;
    }
    return false;
  }

  /** Asked of the part of it that is there. */
  private async leadsToHidden(path: BytePath, reach: Reach): Promise<boolean> {
    if (reach.hides(path)) return true;
    try {
      return await withPlace(path, { reach, follow: true }, async () => false);
    } catch (error) {
      const code = errnoOf(error);
      if (code === undefined) throw error;
      const missing = code === 'ENOENT' || code === 'ENOTDIR';
      return !missing || this.leadsToHidden(parentOf(path), reach);
    }
  }
}
