// The terminals that this server shows: one view of each, made when it is first needed and forgotten when it may be.
// Nothing in them would be lost: a view is made anew from the journal.

import { rm } from 'node:fs/promises';
import type { CancelSignal } from '../base/cancel-signal.ts';
import type { Clock } from '../base/clock.ts';
import { FairTurns } from '../base/fair-turns.ts';
import { abortedError } from '../protocol/cancellation.ts';
import { HoldfastError } from '../protocol/errors.ts';
import { listAll } from '../protocol/list-all.ts';
import type { HostApi, Owner } from '../protocol/host-api.ts';
import type { ProcessInfo } from '../protocol/process.ts';
import {
  checkpointFolder,
  orphanedFolders,
  removeTerminalFolder,
  terminalFolders,
} from '../journal/terminal-folder.ts';
import { FileCheckpoints } from '../screen/emulator/checkpoints.ts';
import type { Pictures } from '../screen/picture/pictures.ts';
import type { Screen, SnapshotOptions } from '../screen/view/screen.ts';
import type { Screens } from '../screen/view/screens.ts';
import type { ScreenText } from '../screen/view/snapshot.ts';
import type { View } from '../screen/view/view.ts';
import { openSession, type TerminalSession } from './terminal-session.ts';
import { lazyScreens } from './lazy-screens.ts';

/** Views kept at once; a running terminal beyond them is no longer answered for. */
const MOST_SESSIONS = 4096;
/** Of these, of one owner. */
const MOST_PER_OWNER = 1024;
/** How often those are looked for whose process was removed by somebody else. */
const SWEEP_MS = 60_000;

interface Shown {
  readonly process: ProcessInfo;
  readonly session: Promise<TerminalSession>;
}

/** A film is a thread of its own, with up to 1 GiB of heap. */
const RECORDING_TURNS = { atOnce: 4, perOwner: 2, mostWaiting: 16 } as const;

export class Terminals {
  private readonly host: HostApi;
  private readonly clock: Clock;
  private readonly home: string;
  private readonly shown = new Map<string, Shown>();
  private cancelSweep: (() => void) | undefined;
  private readonly recordings = new FairTurns({
    ...RECORDING_TURNS,
    refuse: () =>
      new HoldfastError(
        'limit_reached',
        `${RECORDING_TURNS.mostWaiting} recordings of this owner wait already, which is the limit.`,
        { retryAfterMs: 1000 },
      ),
    givenUp: abortedError,
  });
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

  of(process: ProcessInfo): Promise<TerminalSession> {
    const key = keyOf(process);
    const known = this.shown.get(key);
    if (known && isSame(known.process, process)) return known.session;
    // The id is used again: what was shown under it belongs to a process that is gone.
    if (known) void this.forget(known.process);
    const session = openSession(process.owner, process.id, {
      host: this.host,
      clock: this.clock,
      screens: () => this.screens(),
      answers: true,
      checkpoints: (of) => new FileCheckpoints(checkpointFolder(this.home, of)),
    });
    this.shown.set(key, { process, session });
    this.answerQueries(process, session).catch(() => undefined);
    this.forgetOldest(process.owner);
    this.cancelSweep ??= this.clock.after(SWEEP_MS, () => void this.sweep());
    return session;
  }

  /**
   * Answers for every terminal that runs: their programs did not notice that a server is new. What a terminal left behind
   * whose process was removed while nobody looked goes.
   */
  async answerQueriesOfAll(): Promise<void> {
    // Read first: a terminal that is opened meanwhile has a folder that the list may not know.
    const folders = terminalFolders(this.home);
    const processes = await listAll((page) => this.host.list('*', page));
    for (const folder of orphanedFolders(this.home, processes, folders))
      await rm(folder, { recursive: true, force: true });
    for (const process of processes)
      if (process.streams === 'pty' && process.state === 'running') await this.of(process);
  }

  /** It is removed: what was made of it goes too. */
  async forget(process: ProcessInfo): Promise<void> {
    const key = keyOf(process);
    const known = this.shown.get(key);
    if (known && isSame(known.process, process)) {
      this.shown.delete(key);
      await known.session.then(
        (session) => session.close(),
        () => undefined,
      );
    }
    await removeTerminalFolder(this.home, process);
  }

  async close(): Promise<void> {
    this.closed = true;
    this.cancelSweep?.();
    const sessions = Array.from(this.shown.values(), ({ session }) => session);
    this.shown.clear();
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

  /** Until the program has ended. A process that is removed while it is followed is forgotten here, too. */
  private async answerQueries(
    process: ProcessInfo,
    opened: Promise<TerminalSession>,
  ): Promise<void> {
    try {
      const session = await opened;
      if (this.closed) await session.close();
      else await session.answerQueries();
    } catch (error) {
      const known = this.shown.get(keyOf(process));
      if (isGone(error)) await this.forget(process);
      else if (known?.session === opened) this.shown.delete(keyOf(process));
      throw error;
    }
  }

  /** Processes are also removed by the command line and in time: of those that have ended nobody tells us. */
  private async sweep(): Promise<void> {
    for (const { process } of Array.from(this.shown.values())) {
      if (this.closed) return;
      try {
        const now = await this.host.get(process.owner, { id: process.id });
        if (!isSame(now, process)) await this.forget(process);
      } catch (error) {
        if (isGone(error)) await this.forget(process);
      }
    }
    this.cancelSweep = undefined;
    if (this.shown.size > 0 && !this.closed)
      this.cancelSweep = this.clock.after(SWEEP_MS, () => void this.sweep());
  }

  /** Takes a view of a terminal in its owner's turn, and has something made of it outside of this thread. */
  async look<T>(
    session: TerminalSession,
    { signal, ...options }: SnapshotOptions & { readonly signal?: CancelSignal | undefined },
    make: (view: View, pictures: Pictures) => Promise<T>,
  ): Promise<T> {
    const pictures = await this.pictures();
    const { owner } = session;
    const large = await session.isLarge((options.scrollback ?? false) !== false);
    const act = async (): Promise<T> => make(await session.view(options), pictures);
    return pictures.inTurn({ owner, large }, act, signal);
  }

  private async readText(screen: Screen): Promise<ScreenText> {
    const pictures = await this.pictures();
    if (!screen.isLarge(false)) return pictures.text(await screen.view());
    const { owner } = screen;
    return pictures.inTurn({ owner, large: true }, async () => pictures.text(await screen.view()));
  }

  /** Recordings are read and packed for long: a few at once, owners in turn. */
  recordingTurn<T>(
    owner: Owner,
    signal: CancelSignal | undefined,
    act: () => Promise<T>,
  ): Promise<T> {
    return this.recordings.run(owner, act, signal);
  }

  /** Nothing is lost with a view: it is made anew from the journal. An owner beyond its share loses its own oldest one. */
  private forgetOldest(owner: Owner): void {
    const own = Array.from(this.shown).filter(([, { process }]) => process.owner === owner);
    const [oldest] = own.length > MOST_PER_OWNER ? own : this.shown;
    if (!oldest || (own.length <= MOST_PER_OWNER && this.shown.size <= MOST_SESSIONS)) return;
    this.shown.delete(oldest[0]);
    void oldest[1].session.then((session) => session.close());
  }

  /** Loaded with the first picture. */
  pictures(): Promise<Pictures> {
    this.painter ??= lazyScreens.pictures().then(({ Pictures: Made }) => new Made(this.clock));
    return this.painter;
  }

  /** Loaded when somebody looks: most servers never show a terminal. */
  private screens(): Promise<Screens> {
    this.made ??= lazyScreens
      .screens()
      .then(
        ({ Screens: Made }) =>
          new Made({ clock: this.clock, readText: (screen) => this.readText(screen) }),
      );
    return this.made;
  }
}

function keyOf({ owner, id }: ProcessInfo): string {
  return `${owner.length}:${owner}${id}`;
}

/** An id may be used again; with its start it means one process. */
function isSame(one: ProcessInfo, other: ProcessInfo): boolean {
  return one.pid === other.pid && one.startedAtMs === other.startedAtMs;
}

function isGone(error: unknown): boolean {
  return error instanceof HoldfastError && error.code === 'not_found';
}
