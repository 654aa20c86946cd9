// The sessions of dashboard pages. A one-time code, asked for by somebody who is trusted already, becomes a token for one
// page. Both are kept only as hashes; sessions are in a private file, so that a page outlives the server that made it.

import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { randomId } from '../../base/ids.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Owner } from '../../protocol/host-api.ts';
import { readPrivate, replacePrivate, withLock } from '../http/token-file.ts';
import { sumOf, type Bearer } from '../http/tokens.ts';

export interface PageSession {
  readonly id: string;
  /** Whose processes it sees; "*" all. */
  readonly owner: Owner;
  /** What the browser called itself. */
  readonly browser: string;
  readonly createdAtMs: number;
  readonly seenAtMs: number;
  readonly expiresAtMs: number;
  /** A shared link: it only reads these processes. */
  readonly only?: readonly string[];
}

interface StoredSession extends PageSession {
  /** SHA-256 of the token, hex. */
  readonly sum: string;
}

interface Code {
  readonly owner: Owner;
  readonly expiresAtMs: number;
}

/** Not the one of other tokens: no file but ours is asked about it. */
const PREFIX = 'hfp_';
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const CODE_MS = 2 * MINUTE_MS;
/** A session that is not used ends after this long, and any after the longest. */
const IDLE_MS = 12 * HOUR_MS;
const LONGEST_MS = 7 * 24 * HOUR_MS;
/** How often use is noted in the file. */
const NOTE_MS = HOUR_MS;
const MOST_CODES = 256;
const MOST_SESSIONS = 256;
const MAX_BROWSER_CHARS = 160;

export class PageSessions {
  private readonly file: string;
  private readonly clock: Clock;
  /** By hash. Lost with the server: a code lives for two minutes. */
  private readonly codes = new Map<string, Code>();
  private stored: readonly StoredSession[] = [];
  private seenAt = '';

  constructor(folder: string, clock: Clock) {
    this.file = join(folder, 'pages.json');
    this.clock = clock;
  }

  createCode(owner: Owner): { readonly code: string; readonly expiresAtMs: number } {
    const now = this.clock.wallMs();
    for (const [sum, { expiresAtMs }] of this.codes)
      if (expiresAtMs <= now || this.codes.size >= MOST_CODES) this.codes.delete(sum);
    const code = randomBytes(16).toString('base64url');
    const expiresAtMs = now + CODE_MS;
    this.codes.set(hashOf(code), { owner, expiresAtMs });
    return { code, expiresAtMs };
  }

  /** Each code works once. */
  open(code: string, browser: string): { readonly token: string; readonly session: PageSession } {
    const sum = hashOf(code);
    const found = this.codes.get(sum);
    this.codes.delete(sum);
    const now = this.clock.wallMs();
    if (!found || found.expiresAtMs <= now) {
      const problem = 'This sign-in link was used already, has expired, or is of another server.';
      throw new HoldfastError('unauthorized', problem, {
        remedy: 'Run "holdfast dashboard" for a new link.',
      });
    }
    const name = browser.replace(/[^\x20-\x7e]/g, '').slice(0, MAX_BROWSER_CHARS);
    return this.add({ owner: found.owner, browser: name }, IDLE_MS);
  }

  /** A link that shows one process for a while, to each client that has it. */
  share(owner: Owner, id: string, lifeMs: number): ReturnType<PageSessions['open']> {
    return this.add({ owner, browser: 'shared link', only: [id] }, lifeMs);
  }

  private add(
    facts: Pick<PageSession, 'owner' | 'browser' | 'only'>,
    lifeMs: number,
  ): ReturnType<PageSessions['open']> {
    const now = this.clock.wallMs();
    const token = PREFIX + randomBytes(32).toString('base64url');
    const times = { createdAtMs: now, seenAtMs: now, expiresAtMs: now + lifeMs };
    const session = { id: randomId().slice(0, 12), ...times, ...facts };
    this.change((sessions) => [
      ...sessions.slice(-(MOST_SESSIONS - 1)),
      { ...session, sum: hashOf(token) },
    ]);
    return { token, session };
  }

  /** Undefined for a token that is not a page's, or whose session is over. */
  bearer(token: string): Bearer | undefined {
    if (!token.startsWith(PREFIX)) return undefined;
    const sum = hashOf(token);
    const found = this.valid().find((session) => session.sum === sum);
    if (!found) return undefined;
    const isOld = this.clock.wallMs() - found.seenAtMs > NOTE_MS;
    if (isOld && !found.only) this.noteUse(found);
    const bearer = { tokenId: tokenIdOf(found.id), owner: found.owner };
    return found.only ? { ...bearer, only: found.only } : bearer;
  }

  list(sees: (owner: Owner) => boolean): PageSession[] {
    return this.valid()
      .filter(({ owner }) => sees(owner))
      .map(({ sum: _sum, ...session }) => session);
  }

  revoke(id: string, sees: (owner: Owner) => boolean): boolean {
    let found = false;
    this.change((sessions) => {
      const left = sessions.filter((session) => session.id !== id || !sees(session.owner));
      found = left.length < sessions.length;
      return left;
    });
    return found;
  }

  private noteUse({ id, createdAtMs }: StoredSession): void {
    const seenAtMs = this.clock.wallMs();
    const expiresAtMs = Math.min(seenAtMs + IDLE_MS, createdAtMs + LONGEST_MS);
    this.change((sessions) =>
      sessions.map((each) => (each.id === id ? { ...each, seenAtMs, expiresAtMs } : each)),
    );
  }

  private valid(): readonly StoredSession[] {
    const now = this.clock.wallMs();
    return this.current().filter(({ expiresAtMs }) => expiresAtMs > now);
  }

  /** Read again when it has changed: another server of this home may have revoked a session. */
  private current(): readonly StoredSession[] {
    const stats = statSync(this.file, { throwIfNoEntry: false });
    const seen = stats ? `${stats.mtimeMs} ${stats.size} ${stats.ino}` : 'none';
    if (seen !== this.seenAt) this.stored = parseSessions(readPrivate(this.file));
    this.seenAt = seen;
    return this.stored;
  }

  private change(changed: (sessions: readonly StoredSession[]) => readonly StoredSession[]): void {
    withLock(`${this.file}.lock`, () => {
      this.seenAt = '';
      replacePrivate(this.file, `${JSON.stringify(changed(this.valid()), null, 1)}\n`);
      this.seenAt = '';
    });
  }
}

export function tokenIdOf(sessionId: string): string {
  return `page:${sessionId}`;
}

function hashOf(secret: string): string {
  return sumOf(secret).toString('hex');
}

/** A damaged file ends every session: pages sign in again, and nothing else depends on it. */
function parseSessions(text = '[]'): StoredSession[] {
  try {
    const sessions: unknown = JSON.parse(text);
    return Array.isArray(sessions) ? sessions.filter(isSession) : [];
  } catch {
    return [];
  }
}

function isSession(value: unknown): value is StoredSession {
  if (typeof value !== 'object' || value === null) return false;
  const { id, owner, sum, createdAtMs, seenAtMs, expiresAtMs } = value as Partial<StoredSession>;
  const times = [createdAtMs, seenAtMs, expiresAtMs];
  return [id, owner, sum].every(isText) && times.every(Number.isFinite);
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}
