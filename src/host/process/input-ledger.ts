// The input of one process: writes in the order they were asked for, each write id applied once, and no more waiting
// than the bound allows.

import { HoldfastError } from '../../protocol/errors.ts';
import type { InputBody } from '../../protocol/event.ts';
import { MAX_INPUT_EVENT_BYTES } from '../../protocol/limits.ts';
import type { Params } from '../../protocol/operations.ts';

/** Write ids remembered of a process that has ended: enough for a caller that never saw its last answers. */
const IDS_AFTER_END = 64;

export interface Written {
  readonly bytes: number;
  /** It had been asked for before, and was not applied again. */
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

  /** `begin` is asked, at once, for what applies the write; only of a write that was not asked for before. */
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

  /** Runs after every write that was asked for before. */
  afterAll(action: () => void): Promise<void> {
    this.ended = true;
    this.tail = this.tail.then(action);
    return this.tail;
  }

  /** No more input: only the last writes may still be asked for again. */
  close(): void {
    for (const writeId of Array.from(this.seen.keys()).slice(0, -IDS_AFTER_END))
      this.seen.delete(writeId);
  }

  private remember(writeId: string, done: Promise<void>): void {
    this.seen.set(writeId, done);
    // A write that failed was not applied: the same id may be tried again.
    done.catch(() => this.seen.delete(writeId));
    const oldest = this.seen.keys().next();
    if (this.seen.size > this.maxIds && !oldest.done) this.seen.delete(oldest.value);
  }
}

/** How input was meant, for the record. */
export type InputMeaning = Pick<Params<'write'>, 'writeId' | 'as' | 'keys' | 'holder' | 'isReply'>;

/**
 * What the journal says of it: the bytes and keys themselves only where they may be kept, as many events as these bytes
 * need. What the write was called and how it was meant stands in the first.
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
