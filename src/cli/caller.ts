// The caller: who asks, from where, and the link to the keeper, made when it is first needed.

import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { listAll } from '../protocol/list-all.ts';
import { HoldfastError } from '../protocol/errors.ts';
import { EVERYONE, type CallerOrigin, type Owner } from '../protocol/host-api.ts';
import type { ProcessInfo } from '../protocol/process.ts';
import type { KeeperLink } from '../keeper/link.ts';
import type { Settings } from './settings/configured.ts';

export interface CallerOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly home: string | undefined;
  readonly owner: string | undefined;
  /** Tells a person what may surprise. */
  readonly note?: (text: string) => void;
}

/** "HOST/ID" */
const AT_HOST = /^([a-z0-9][a-z0-9-]{0,62})\/(.+)$/;

/** The owner of what the command line starts and signals, unless --owner names another. */
const CLI_OWNER = 'cli';
/** An id that the host made: it is never a prefix, and never in use by two owners. */
const MADE_ID = /^[0-9a-z]{26}$/;
/** After this many lost connections without an answer the error is reported. */
const MOST_TRIES = 3;

/** The state directory where no flag names one. */
export function usualHome(env: NodeJS.ProcessEnv): string {
  return env['HOLDFAST_HOME'] || join(homedir(), '.holdfast');
}

/** The state directory of the gateway beside that of this machine. */
export function gatewayHome(home: string): string {
  return join(home, 'gateway');
}

export class Caller {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** Whose processes are seen. */
  readonly sees: Owner;
  private readonly given: Owner | undefined;
  private readonly note: (text: string) => void;
  /** Of the process that this command runs in; known once the keeper has been asked. */
  private inside: Owner | undefined;
  private link: Promise<KeeperLink> | undefined;
  private folder: string;
  /** To the keeper of this machine, of a command that then turned to the fleet. */
  private former: Promise<KeeperLink> | undefined;
  private place: 'here' | 'fleet' | undefined;

  constructor(options: CallerOptions) {
    const { env, cwd, owner } = options;
    if (owner === EVERYONE) {
      throw new HoldfastError(
        'invalid_input',
        `--owner "${EVERYONE}" means all owners; it cannot own a process.`,
      );
    }
    this.env = env;
    this.cwd = cwd;
    this.folder = resolve(cwd, options.home ?? usualHome(env));
    this.note = options.note ?? (() => undefined);
    this.given = owner;
    this.sees = owner ?? EVERYONE;
  }

  get home(): string {
    return this.folder;
  }

  /** From now on the gateway of this machine is asked, for the processes of all hosts. */
  useFleet(): void {
    if (this.place === 'fleet') return;
    this.keepTo('fleet');
    this.folder = gatewayHome(this.folder);
    // A word that is still looked for here uses it.
    this.former = this.link;
    this.link = undefined;
  }

  /** A command has one link: its words are about one place. */
  private keepTo(place: 'here' | 'fleet'): void {
    if (this.place !== undefined && this.place !== place) {
      const problem = 'Processes of this machine and of a fleet are named in one command.';
      throw new HoldfastError('invalid_input', problem, { remedy: 'Name them in two commands.' });
    }
    this.place = place;
  }

  /** Who starts, and who is named as the sender of a signal. Ask for the host first: inside a process it is that one's owner. */
  get name(): Owner {
    return this.given ?? this.inside ?? CLI_OWNER;
  }

  /** The owner for which a program inside a process of this home acts; undefined outside, and where no keeper runs. */
  async scope(): Promise<CallerOrigin | undefined> {
    return (await this.running())?.keeper.scope;
  }

  /** For what concerns every owner. */
  async refuseInside(what: string): Promise<void> {
    const scope = await this.scope();
    if (!scope) return;
    const { onlyFromOutside } = await import('../keeper/scope.ts');
    onlyFromOutside(scope, what);
  }

  /** What the variables and config.toml say now; throws when they make no sense. */
  async settings(): Promise<Settings> {
    const { Settings } = await import('./settings/configured.ts');
    return Settings.load(this.home, this.env);
  }

  /** Options of a keeper that has to be started. */
  readonly keeperArgs = async (): Promise<readonly string[]> => {
    const { keeperArguments } = await import('./settings/configured.ts');
    return keeperArguments(await this.settings());
  };

  /** The keeper; started if there is none. */
  host(): Promise<KeeperLink> {
    this.link ??= this.connect(true);
    return this.link;
  }

  /** The keeper if it runs. */
  async running(): Promise<KeeperLink | undefined> {
    if (!existsSync(this.home)) return undefined;
    try {
      this.link ??= this.connect(false);
      return await this.link;
    } catch (error) {
      this.link = undefined;
      if (isError(error, 'keeper_unreachable')) return undefined;
      throw error;
    }
  }

  /** For reading: a home in which nothing was ever started needs no keeper. */
  async hostIfUsed(): Promise<KeeperLink | undefined> {
    const isUsed = this.place === 'fleet' || existsSync(join(this.home, 'journals'));
    return isUsed ? this.host() : this.running();
  }

  /** Sends a request that may be repeated: when the keeper is lost, the next one gets it. */
  async ask<T>(question: (host: KeeperLink) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await question(await this.host());
      } catch (error) {
        if (!isError(error, 'keeper_lost') || attempt === MOST_TRIES) throw error;
        this.link = undefined;
      }
    }
  }

  /** The process of this id, of this name, or whose id alone begins like this; "HOST/ID" is one of a fleet. */
  async find(text: string): Promise<ProcessInfo> {
    if (this.place !== 'fleet') {
      try {
        const found = await this.findIn(text);
        this.keepTo('here');
        return found;
      } catch (error) {
        const elsewhere = AT_HOST.test(text) && existsSync(gatewayHome(this.home));
        if (!isError(error, 'not_found') || !elsewhere) throw error;
        this.useFleet();
      }
    }
    const [, at, id = text] = AT_HOST.exec(text) ?? [];
    return this.findIn(id, at);
  }

  /** `at`: the host of a fleet that it is at. */
  private async findIn(text: string, at?: string): Promise<ProcessInfo> {
    const link = await this.hostIfUsed();
    if (link && MADE_ID.test(text)) {
      try {
        const found = await link.get(this.sees, { id: text });
        if (at === undefined || found.host === at) return found;
      } catch (error) {
        if (!isError(error, 'ambiguous')) throw error;
      }
    }
    const all = link ? await listAll((page) => link.list(this.sees, page)) : [];
    const processes = at === undefined ? all : all.filter(({ host }) => host === at);
    const found = choose(processes, text, this.name);
    if (!found) {
      const word = at === undefined ? text : `${at}/${text}`;
      const problem = `Process "${word}" not found${tooShort(processes, text)}.`;
      throw new HoldfastError('not_found', problem, { id: text });
    }
    if (found.name === text && found.id !== text) this.tellNewer(processes, found);
    return link && found.cut ? link.get(found.owner, { id: found.id }) : found;
  }

  /** A name means the running process, also when a newer one with that name has exited. */
  private tellNewer(
    processes: readonly ProcessInfo[],
    { id, name, owner, startedAtMs }: ProcessInfo,
  ): void {
    const newer = processes.find(
      (other) => other.name === name && other.owner === owner && other.startedAtMs > startedAtMs,
    );
    if (newer)
      this.note(
        `"${name}" means the running process ${id}. A newer process with that name, ${newer.id}, has exited.`,
      );
  }

  async close(): Promise<void> {
    const links = [this.link, this.former];
    this.link = this.former = undefined;
    for (const link of links) await (await link?.catch(() => undefined))?.close();
  }

  private async connect(startIfMissing: boolean): Promise<KeeperLink> {
    const { connectKeeper } = await import('../keeper/connect.ts');
    const { home, env, keeperArgs, place } = this;
    const starts = startIfMissing && place !== 'fleet';
    try {
      const link = await connectKeeper({ home, env, startIfMissing: starts, keeperArgs });
      this.inside = link.keeper.scope?.owner;
      return link;
    } catch (error) {
      if (place !== 'fleet' || !isError(error, 'keeper_unreachable')) throw error;
      throw new HoldfastError('not_answering', `No gateway runs in ${home}.`, {
        remedy: 'Start one with "holdfast gateway ADDRESS".',
      });
    }
  }
}

export function isError(
  thrown: unknown,
  ...codes: HoldfastError['code'][]
): thrown is HoldfastError {
  return thrown instanceof HoldfastError && codes.includes(thrown.code);
}

/** With fewer characters a mistyped name could stop a process whose id begins like it. */
const PREFIX_MIN = 4;

type Choice = Pick<ProcessInfo, 'id' | 'name' | 'state' | 'owner'>;

/**
 * The one process that a word means; `processes` as lists give them: running ones first, then the newest first. The
 * caller's own go first: nobody else's id or name stands before them. Among other owners' a word that means two is
 * refused, whether as an id, a name or the beginning of an id.
 */
export function choose<T extends Choice>(
  processes: readonly T[],
  text: string,
  own: Owner,
): T | undefined {
  const mine = processes.filter(({ owner }) => owner === own);
  for (const kind of [withId, withName, withBeginning]) {
    const found = kind(mine, text);
    if (found.length > 0) return onlyOne(found, text);
  }
  const theirs = processes.filter(({ owner }) => owner !== own);
  const owners = new Set(theirs.map(({ owner }) => owner));
  const named = Array.from(owners, (owner) => withName(ofOwner(theirs, owner), text)).flat();
  return onlyOne(
    [...new Set([...withId(theirs, text), ...named, ...withBeginning(theirs, text)])],
    text,
  );
}

function ofOwner<T extends Choice>(processes: readonly T[], wanted: Owner): T[] {
  return processes.filter(({ owner }) => owner === wanted);
}

function withId<T extends Choice>(processes: readonly T[], text: string): T[] {
  return processes.filter(({ id }) => id === text);
}

/** Of one owner: those that run, else the newest. */
function withName<T extends Choice>(processes: readonly T[], text: string): T[] {
  const named = processes.filter(({ name }) => name === text);
  const running = named.filter(({ state }) => state === 'running');
  return running.length > 0 ? running : named.slice(0, 1);
}

function withBeginning<T extends Choice>(processes: readonly T[], text: string): T[] {
  return text.length < PREFIX_MIN ? [] : processes.filter(({ id }) => id.startsWith(text));
}

function onlyOne<T extends Choice>(found: readonly T[], text: string): T | undefined {
  if (found.length < 2) return found[0];
  const oneOwner = new Set(found.map(({ owner }) => owner)).size === 1;
  const sameId = new Set(found.map(({ id }) => id)).size === 1;
  const shown = found.slice(0, 3).map(({ id, owner }) => {
    if (oneOwner) return id;
    return sameId ? `owner ${owner}` : `${id} of ${owner}`;
  });
  const more = found.length > shown.length ? ', …' : '';
  const advice = oneOwner ? 'give more of the id' : 'name the owner with --owner';
  const message = `"${text}" matches ${found.length} processes (${shown.join(', ')}${more}): ${advice}.`;
  throw new HoldfastError('ambiguous', message, { id: text });
}

function tooShort(processes: readonly Choice[], text: string): string {
  const begins =
    text.length > 0 && text.length < PREFIX_MIN && processes.some(({ id }) => id.startsWith(text));
  return begins ? `: a prefix of an id needs ${PREFIX_MIN} characters or more` : '';
}
