// The terminals that this server shows: one view of each, made when it is first needed and forgotten when it may be.
// Nothing in them would be lost: a view is made anew from the journal.

import { rm } from 'node:fs/promises';
import type { Clock } from '../../base/clock.ts';
import type { HostApi, Owner } from '../../protocol/host-api.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { FileCheckpoints } from '../../screen/checkpoints.ts';
import type { Pictures } from '../../screen/pictures.ts';
import type { Screens } from '../../screen/screens.ts';
import { checkpointFolder, terminalFolder } from './terminal-folder.ts';
import { openSession, type TerminalSession } from './terminal-session.ts';

/** Views kept at once; a running terminal beyond them is no longer answered for. */
const MOST_SESSIONS = 4096;

export class Terminals {
  private readonly host: HostApi;
  private readonly clock: Clock;
  private readonly home: string;
  private readonly sessions = new Map<string, Promise<TerminalSession>>();
  private made: Promise<Screens> | undefined;
  private painter: Promise<Pictures> | undefined;
  private closed = false;

  constructor(host: HostApi, clock: Clock, home: string) {
    this.host = host;
    this.home = home;
    this.clock = clock;
  }

  /** The one that this owner may see. */
  async open(sees: Owner, id: string): Promise<TerminalSession> {
    const process = await this.host.get(sees, { id });
    return this.of(process);
  }

  of({ owner, id }: ProcessInfo): Promise<TerminalSession> {
    const key = `${owner.length}:${owner}${id}`;
    const known = this.sessions.get(key);
    if (known) return known;
    const opened = openSession(owner, id, {
      host: this.host,
      screens: () => this.screens(),
      answers: true,
      checkpoints: (process) => new FileCheckpoints(checkpointFolder(this.home, process)),
    });
    this.sessions.set(key, opened);
    opened.then(
      (session) => {
        if (this.closed) void session.close();
        else session.attend().catch(() => undefined);
      },
      () => this.sessions.delete(key),
    );
    this.forgetOldest();
    return opened;
  }

  /** Answers for every terminal that runs: their programs did not notice that a server is new. */
  async attendAll(): Promise<void> {
    const { processes } = await this.host.list('*', { state: 'running' });
    for (const process of processes) if (process.streams === 'pty') await this.of(process);
  }

  /** It is being removed: what was made of it goes too. */
  async forget(process: ProcessInfo): Promise<void> {
    const { owner, id } = process;
    const key = `${owner.length}:${owner}${id}`;
    const session = this.sessions.get(key);
    this.sessions.delete(key);
    await session?.then(
      (each) => each.close(),
      () => undefined,
    );
    await rm(terminalFolder(this.home, process), { recursive: true, force: true });
  }

  async close(): Promise<void> {
    this.closed = true;
    const sessions = Array.from(this.sessions.values());
    this.sessions.clear();
    await Promise.all(
      sessions.map((each) =>
        each.then(
          (session) => session.close(),
          () => undefined,
        ),
      ),
    );
    await (await this.made)?.close();
    await (await this.painter)?.close();
  }

  private forgetOldest(): void {
    if (this.sessions.size <= MOST_SESSIONS) return;
    const [oldest] = this.sessions;
    if (!oldest) return;
    this.sessions.delete(oldest[0]);
    void oldest[1].then((session) => session.close());
  }

  /** Loaded with the first picture. */
  pictures(): Promise<Pictures> {
    this.painter ??= import('../../screen/pictures.ts').then(
      ({ Pictures: Made }) => new Made(this.clock),
    );
    return this.painter;
  }

  /** Loaded when somebody looks: most servers never show a terminal. */
  private screens(): Promise<Screens> {
    this.made ??= import('../../screen/screens.ts').then(
      ({ Screens: Made }) => new Made({ clock: this.clock }),
    );
    return this.made;
  }
}
