// Large answers that are complete before they are sent. A client that does not read keeps them in memory, so they are
// limited per token and in total, and a stalled client is disconnected. They take the processors from other owners, so few
// of one token are made and sent at once.

import { systemClock, type Clock } from '../../base/clock.ts';
import { FairTurns } from '../../base/fair-turns.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { clientGone, writePaced } from './paced-write.ts';
import type { Exchange } from './router.ts';

/** Headers of every JSON answer. */
export const JSON_HEADERS = {
  'Content-Type': 'application/json; charset=utf-8',
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
};

export interface AnswerLimits {
  /** Unread bytes of one token. */
  readonly perToken: number;
  /** Unread bytes of all tokens together. */
  readonly total: number;
  /** A client that reads nothing for this long is disconnected. */
  readonly stallMs: number;
}

const MiB = 1024 * 1024;
/** Six of the largest snapshots per token; four such tokens at once. */
const defaults: AnswerLimits = { perToken: 64 * MiB, total: 256 * MiB, stallMs: 30_000 };
/** Of the limit of a token: with more unread, no further large answer is made for it. */
const FULL_PART = 0.5;
/** Smaller answers fit into the kernel's socket buffers. */
export const LARGE_BYTES = 256 * 1024;
const PIECE_BYTES = 256 * 1024;
/** Of one token: more at once are not faster, because one thread sends them. */
const TURNS = { perOwner: 2, mostWaiting: 64 } as const;

export class UnreadAnswers {
  readonly stallMs: number;
  readonly clock: Clock;
  private readonly limits: AnswerLimits;
  private readonly held = new Map<string, number>();
  private readonly turns = new FairTurns({ ...TURNS, refuse: tooManyUnread, givenUp: clientGone });
  private total = 0;

  constructor(limits: Partial<AnswerLimits> = {}, clock = systemClock) {
    this.limits = { ...defaults, ...limits };
    this.stallMs = this.limits.stallMs;
    this.clock = clock;
  }

  /** Unread bytes now. */
  get bytes(): number {
    return this.total;
  }

  /**
   * Call before a large answer is made. Resolves when few others of the token are under way. The turn lasts until the
   * answer was taken or the client disconnected.
   */
  async begin({ caller: { tokenId }, response, gone }: Receiver): Promise<void> {
    this.admit(tokenId);
    const turn = this.turns.pass(tokenId, gone);
    if (turn) await turn;
    const done = (): void => this.turns.done(tokenId);
    if (gone.aborted) {
      done();
      throw clientGone();
    }
    response.once('close', done);
    this.admit(tokenId);
  }

  /** Throws if this token leaves so much unread that a large answer might be refused after it was made. */
  admit(tokenId: string): void {
    if ((this.held.get(tokenId) ?? 0) > this.limits.perToken * FULL_PART) throw tooManyUnread();
  }

  /** Counts an answer until the returned function is called, or throws. */
  take(tokenId: string, bytes: number): () => void {
    const { perToken, total } = this.limits;
    if (bytes > perToken)
      throw new HoldfastError(
        'too_large',
        `The answer has ${bytes} bytes and the limit is ${perToken}; ask for less at once.`,
      );
    const now = this.held.get(tokenId) ?? 0;
    if (now + bytes > perToken || this.total + bytes > total) throw tooManyUnread();
    this.count(tokenId, bytes);
    return () => this.count(tokenId, -bytes);
  }

  private count(tokenId: string, bytes: number): void {
    this.total += bytes;
    const now = (this.held.get(tokenId) ?? 0) + bytes;
    if (now > 0) this.held.set(tokenId, now);
    else this.held.delete(tokenId);
  }
}

function tooManyUnread(): HoldfastError {
  return new HoldfastError(
    'limit_reached',
    'Too many large answers wait to be read; read those that were asked for first.',
    { retryAfterMs: 1000 },
  );
}

type Receiver = Pick<Exchange, 'response' | 'gone' | 'caller'>;

/** Sends a whole answer. Resolves when the client has taken it or disconnected. */
export async function sendBytes(
  to: Receiver & Pick<Exchange, 'unread'>,
  headers: Readonly<Record<string, string>>,
  bytes: Buffer,
): Promise<undefined> {
  const { response, unread } = to;
  const large = bytes.length > LARGE_BYTES;
  const free = large ? unread.take(to.caller.tokenId, bytes.length) : undefined;
  try {
    response.writeHead(200, { ...headers, 'Content-Length': bytes.length });
    if (large) {
      for (let at = 0; at < bytes.length; at += PIECE_BYTES)
        await writePaced(to, bytes.subarray(at, at + PIECE_BYTES), unread);
      response.end();
    } else response.end(bytes);
  } finally {
    free?.();
  }
  return undefined;
}

/** Sends lines as they are made, at the client's pace. */
export async function sendLines(
  to: Receiver & Pick<Exchange, 'unread'>,
  headers: Readonly<Record<string, string>>,
  lines: AsyncIterable<string>,
): Promise<void> {
  // An error before the first line can still be answered with a status.
  let begun = false;
  for await (const text of lines) {
    if (!begun) to.response.writeHead(200, headers);
    begun = true;
    await writePaced(to, text, to.unread);
  }
  if (!begun) to.response.writeHead(200, headers);
  to.response.end();
}
