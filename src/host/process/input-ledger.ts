// The input of one process: writes in order, each write id applied once, and a limit on waiting bytes.

import { HoldfastError } from '../../protocol/errors.ts';
import type { InputBody } from '../../protocol/event.ts';
import { MAX_INPUT_EVENT_BYTES } from '../../protocol/limits.ts';
import type { Params } from '../../protocol/operations.ts';

/** Write ids remembered after the exit: enough for a caller that did not see its last answers. */
const IDS_AFTER_END = 64;

export interface Written {
  readonly bytes: number;
  /** The write was requested before, and was not applied again. */
  readonly repeated: boolean;
}

export class InputLedger {
  ended = false;
  private readonly seen = new Map<string, Promise<void>>();
  private readonly maxIds: number;
  private readonly maxBytes: number;
  private waitingBytes = 0;
  private tail: Promise<void> = Promise.resolve();

  constructor({ writeIds, inputBytes }: { writeIds: number; inputBytes: number }) {
    this.maxIds = writeIds;
    this.maxBytes = inputBytes;
  }

  /** Calls `begin` at once, only for a new write; it returns the function that applies the write. */
  async write(
    data: Buffer,
    writeId: string | undefined,
    begin: () => () => Promise<void>,
  ): Promise<Written> {
    const earlier = writeId === undefined ? undefined : this.seen.get(writeId);
    if (earlier) {
      await earlier;
      return { bytes: data.length, repeated: true };
    }
    const apply = begin();
    if (this.waitingBytes + data.length > this.maxBytes) {
      throw new HoldfastError(
        'limit_reached',
        `${this.waitingBytes} bytes of input already wait for the process.`,
      );
    }
    this.waitingBytes += data.length;
    const done = this.tail.then(apply).finally(() => {
      this.waitingBytes -= data.length;
    });
    this.tail = done.catch(() => undefined);
    if (writeId !== undefined) this.remember(writeId, done);
    await done;
    return { bytes: data.length, repeated: false };
  }

  /** Runs after all earlier writes. */
  afterAll(action: () => void): Promise<void> {
    this.ended = true;
    this.tail = this.tail.then(action);
    return this.tail;
  }

  /** No more input: only the last writes may be repeated. */
  close(): void {
    for (const writeId of Array.from(this.seen.keys()).slice(0, -IDS_AFTER_END))
      this.seen.delete(writeId);
  }

  private remember(writeId: string, done: Promise<void>): void {
    this.seen.set(writeId, done);
    // A failed write was not applied: the same id may be tried again.
    done.catch(() => this.seen.delete(writeId));
    const oldest = this.seen.keys().next();
    if (this.seen.size > this.maxIds && !oldest.done) this.seen.delete(oldest.value);
  }
}

/** What the caller sent, for the journal. */
export type InputMeaning = Pick<Params<'write'>, 'writeId' | 'as' | 'keys' | 'holder' | 'isReply'>;

/**
 * The events of a write: bytes and keys only where they may be stored, in as many events as needed. The first event has
 * the write's id and kind.
 */
export function inputBodies(
  data: Buffer,
  { writeId, as, keys }: InputMeaning,
  keep: boolean,
): [InputBody, ...InputBody[]] {
  const bodyOf = (from: number): InputBody => {
    const part = keep ? data.subarray(from, from + MAX_INPUT_EVENT_BYTES) : data;
    return {
      bytes: part.length,
      ...(keep && { data: part.toString('base64') }),
      ...(from + part.length < data.length && { more: true }),
    };
  };
  const first: InputBody = {
    ...bodyOf(0),
    ...(writeId !== undefined && { writeId }),
    ...(as && { as }),
    ...(keep && keys && { keys }),
  };
  const others: InputBody[] = [];
  for (let from = first.bytes; from < data.length; from += MAX_INPUT_EVENT_BYTES)
    others.push(bodyOf(from));
  return [first, ...others];
}
