// The caller: who asks, from where, and the link to the keeper, made when it is first needed.

import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { HoldfastError } from '../protocol/errors.ts';
import { EVERYONE, type Owner } from '../protocol/host-api.ts';
import type { ProcessInfo } from '../protocol/process.ts';
import type { KeeperLink } from '../keeper/link.ts';
import { label } from './terminal-text.ts';
import { parseDuration } from './units.ts';

export interface CallerOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly home: string | undefined;
  readonly owner: string | undefined;
}

/** Who starts and signals from the command line, unless told otherwise. */
const CLI_OWNER = 'cli';
/** An id that the host made: it cannot be a beginning, or another owner's as well. */
const MADE_ID = /^[0-9a-z]{26}$/;
/** A keeper that is lost again and again, without an answer in between, is a problem to report. */
const MOST_TRIES = 3;

export class Caller {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly home: string;
  /** By a flag or a variable; otherwise it is where the user's own is. */
  readonly homeIsNamed: boolean;
  /** Who starts, and who is named as the sender of a signal. */
  readonly name: Owner;
  /** Whose processes are seen. */
  readonly sees: Owner;
  private link: Promise<KeeperLink> | undefined;

  constructor(options: CallerOptions) {
    const { env, cwd, owner } = options;
    if (owner === EVERYONE) {
      throw new HoldfastError(
        'invalid_input',
        `--owner "${EVERYONE}" stands for everyone and owns nothing.`,
      );
    }
    this.env = env;
    this.cwd = cwd;
    this.home = resolve(
      cwd,
      options.home ?? (env['HOLDFAST_HOME'] || join(homedir(), '.holdfast')),
    );
    this.homeIsNamed = Boolean(options.home ?? env['HOLDFAST_HOME']);
    this.name = owner ?? CLI_OWNER;
    this.sees = owner ?? EVERYONE;
  }

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

  /** For looking at processes: where nothing was ever started there is nothing to see, and no keeper is needed. */
  async hostIfUsed(): Promise<KeeperLink | undefined> {
    return existsSync(join(this.home, 'journals')) ? this.host() : this.running();
  }

  /** Asks something that may be asked twice: when the keeper is lost, the next one answers. */
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

  /** The process of this id, of this name, or whose id alone begins like this. */
  async find(text: string): Promise<ProcessInfo> {
    const host = await this.hostIfUsed();
    if (host && MADE_ID.test(text)) return host.get(this.sees, { id: text });
    const processes = host ? (await host.list(this.sees, {})).processes : [];
    const found = choose(processes, text);
    if (!found)
      throw new HoldfastError('not_found', `Process "${label(text)}" not found.`, { id: text });
    return found;
  }

  async close(): Promise<void> {
    const link = await this.link?.catch(() => undefined);
    this.link = undefined;
    await link?.close();
  }

  private async connect(startIfMissing: boolean): Promise<KeeperLink> {
    const { connectKeeper } = await import('../keeper/connect.ts');
    const { home, env } = this;
    return connectKeeper({ home, env, startIfMissing, keeperArgs: keeperArgs(env) });
  }
}

export function isError(
  thrown: unknown,
  ...codes: HoldfastError['code'][]
): thrown is HoldfastError {
  return thrown instanceof HoldfastError && codes.includes(thrown.code);
}

/** Fewer characters would let a mistyped or forgotten name stop a process whose id happens to begin so. */
const PREFIX_MIN = 4;

/** What lists give: running ones first, then the newest first. */
export function choose<T extends Pick<ProcessInfo, 'id' | 'name' | 'state' | 'owner'>>(
  processes: readonly T[],
  text: string,
): T | undefined {
  const exact = processes.filter(({ id }) => id === text);
  if (exact.length > 0) return onlyOne(exact, text);
  const named = processes.filter(({ name }) => name === text);
  const running = named.filter(({ state }) => state === 'running');
  if (running.length > 1) return onlyOne(running, text);
  if (named.length > 0) return running[0] ?? named[0];
  if (text.length < PREFIX_MIN) return undefined;
  return onlyOne(
    processes.filter(({ id }) => id.startsWith(text)),
    text,
  );
}

function onlyOne<T extends Pick<ProcessInfo, 'id' | 'owner'>>(
  found: readonly T[],
  text: string,
): T | undefined {
  if (found.length < 2) return found[0];
  const sameId = found.every(({ id }) => id === text);
  const shown = found.slice(0, 3).map(({ id, owner }) => (sameId ? `owner ${label(owner)}` : id));
  const more = found.length > shown.length ? ', …' : '';
  const advice = sameId ? 'name the owner with --owner' : 'give more of the id';
  const message = `"${label(text)}" means ${found.length} processes (${shown.join(', ')}${more}): ${advice}.`;
  throw new HoldfastError('invalid_input', message, { field: 'id' });
}

function keeperArgs(env: NodeJS.ProcessEnv): string[] {
  const { HOLDFAST_IDLE: idle, HOLDFAST_LIMITS: limits } = env;
  const args: string[] = [];
  if (idle) {
    const ms = parseDuration(idle);
    if (ms === undefined)
      throw new HoldfastError('invalid_input', `HOLDFAST_IDLE "${label(idle)}" is not a duration.`);
    args.push('--idle-ms', String(ms));
  }
  if (limits) args.push('--limits', limits);
  return args;
}
