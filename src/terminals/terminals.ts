// The terminals that this server shows: one session each, opened on first use. Sessions may be dropped at any time,
// because a screen is rebuilt from the journal.

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

/** The maximum number of sessions. Terminals above it get no answers to their queries. */
const MAX_SESSIONS = 4096;
/** The maximum per owner. */
const MAX_PER_OWNER = 1024;
/** How often sessions of removed processes are looked for. */
const SWEEP_MS = 60_000;

interface OpenTerminal {
  readonly process: ProcessInfo;
  readonly session: Promise<TerminalSession>;
}

/** A recording runs in a thread with up to 1 GiB of heap. */
const RECORDING_TURNS = { atOnce: 4, perOwner: 2, mostWaiting: 16 } as const;

export class Terminals {
  private readonly answers: boolean;
  private readonly host: HostApi;
  private readonly clock: Clock;
  private readonly home: string;
  private readonly terminals = new Map<string, OpenTerminal>();
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
  private screenPool: Promise<Screens> | undefined;
  private pictureRenderer: Promise<Pictures> | undefined;
  private closed = false;

  /** `answers`: whether queries of programs are answered here. Only one server at a time may. */
  constructor(host: HostApi, clock: Clock, home: string, { answers = true } = {}) {
    this.answers = answers;
    this.host = host;
    this.home = home;
    this.clock = clock;
  }

  /** A terminal that this owner may see. */
  async open(sees: Owner, id: string): Promise<TerminalSession> {
    const process = await this.host.get(sees, { id });
    return this.of(process);
  }

  of(process: ProcessInfo): Promise<TerminalSession> {
    const key = keyOf(process);
    const known = this.terminals.get(key);
    if (known && isSame(known.process, process)) return known.session;
    // The id was reused: the cached session belongs to a process that is gone.
    if (known) void this.forget(known.process);
    const session = openSession(process.owner, process.id, {
      host: this.host,
      clock: this.clock,
      screens: () => this.screens(),
      answers: this.answers,
      // What a program asks while the emulator is being loaded is answered too.
      answersAfter: process.seq,
      checkpoints: (of) => new FileCheckpoints(checkpointFolder(this.home, of)),
    });
    this.terminals.set(key, { process, session });
    if (this.answers) this.answerQueries(process, session).catch(() => undefined);
    this.evictOldest(process.owner);
    this.cancelSweep ??= this.clock.after(SWEEP_MS, () => void this.sweep());
    return session;
  }

  /**
   * Opens a session for every running terminal, so that its queries are answered by a new server too. Deletes folders
   * of terminals whose processes were removed meanwhile.
   */
  async answerQueriesOfAll(): Promise<void> {
    // Read first: a terminal that is opened meanwhile has a folder but may not be in the list.
    const folders = terminalFolders(this.home);
    const processes = await listAll((page) => this.host.list('*', page));
    for (const folder of orphanedFolders(this.home, processes, folders))
      await rm(folder, { recursive: true, force: true });
    for (const process of processes)
      if (process.streams === 'pty' && process.state === 'running') await this.of(process);
  }

  /** The process is removed, so its session and folder go too. */
  async forget(process: ProcessInfo): Promise<void> {
    const key = keyOf(process);
    const known = this.terminals.get(key);
    if (known && isSame(known.process, process)) {
      this.terminals.delete(key);
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
    const sessions = Array.from(this.terminals.values(), ({ session }) => session);
    this.terminals.clear();
    await Promise.all(
      sessions.map((each) =>
        each.then(
          (session) => session.close(),
          () => undefined,
        ),
      ),
    );
    await (await this.screenPool)?.close();
    await (await this.pictureRenderer)?.close();
  }

  /** Until the program exits. A process that is removed meanwhile is forgotten here too. */
  private async answerQueries(
    process: ProcessInfo,
    opened: Promise<TerminalSession>,
  ): Promise<void> {
    try {
      const session = await opened;
      if (this.closed) await session.close();
      else await session.answerQueries();
    } catch (error) {
      const known = this.terminals.get(keyOf(process));
      if (isGone(error)) await this.forget(process);
      else if (known?.session === opened) this.terminals.delete(keyOf(process));
      throw error;
    }
  }

  /** The command line and retention remove processes too, and nobody reports those that had exited. */
  private async sweep(): Promise<void> {
    for (const { process } of Array.from(this.terminals.values())) {
      if (this.closed) return;
      try {
        const now = await this.host.get(process.owner, { id: process.id });
        if (!isSame(now, process)) await this.forget(process);
      } catch (error) {
        if (isGone(error)) await this.forget(process);
      }
    }
    this.cancelSweep = undefined;
    if (this.terminals.size > 0 && !this.closed)
      this.cancelSweep = this.clock.after(SWEEP_MS, () => void this.sweep());
  }

  /** Takes a view of a terminal when its owner's turn comes, and passes it to a worker thread. */
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

  /** Recordings take long: a few run at once, owners take turns. */
  recordingTurn<T>(
    owner: Owner,
    signal: CancelSignal | undefined,
    act: () => Promise<T>,
  ): Promise<T> {
    return this.recordings.run(owner, act, signal);
  }

  /** An owner above its share loses its own oldest session. */
  private evictOldest(owner: Owner): void {
    const own = Array.from(this.terminals).filter(([, { process }]) => process.owner === owner);
    const [oldest] = own.length > MAX_PER_OWNER ? own : this.terminals;
    if (!oldest || (own.length <= MAX_PER_OWNER && this.terminals.size <= MAX_SESSIONS)) return;
    this.terminals.delete(oldest[0]);
    void oldest[1].session.then((session) => session.close());
  }

  /** Loaded for the first picture. */
  pictures(): Promise<Pictures> {
    this.pictureRenderer ??= lazyScreens
      .pictures()
      .then(({ Pictures: Made }) => new Made(this.clock));
    return this.pictureRenderer;
  }

  /** Loaded on first use: most servers never show a terminal. */
  private screens(): Promise<Screens> {
    this.screenPool ??= lazyScreens
      .screens()
      .then(
        ({ Screens: Made }) =>
          new Made({ clock: this.clock, readText: (screen) => this.readText(screen) }),
      );
    return this.screenPool;
  }
}

function keyOf({ owner, id }: ProcessInfo): string {
  return `${owner.length}:${owner}${id}`;
}

/** An id may be reused; pid and start time identify one process. */
function isSame(one: ProcessInfo, other: ProcessInfo): boolean {
  return one.pid === other.pid && one.startedAtMs === other.startedAtMs;
}

function isGone(error: unknown): boolean {
  return error instanceof HoldfastError && error.code === 'not_found';
}
