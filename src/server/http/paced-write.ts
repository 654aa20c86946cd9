// Writes an answer at the client's pace: the caller awaits each piece before it makes the next.

import type { Clock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Exchange } from './router.ts';

/** A client that reads nothing for `stallMs` is disconnected. */
interface Stall {
  readonly clock: Clock;
  readonly stallMs: number;
}

/** Resolves when the piece is sent or buffered; rejects with `aborted` when the client has disconnected. */
export async function writePaced(
  { response, gone }: Pick<Exchange, 'response' | 'gone'>,
  piece: string | Buffer,
  stall?: Stall,
): Promise<void> {
  if (gone.aborted) throw clientGone();
  if (response.write(piece)) return;
  await new Promise<void>((resolve, reject) => {
    const cancel = stall?.clock.after(stall.stallMs, () => response.destroy());
    const drained = (): void => {
      cancel?.();
      gone.removeEventListener('abort', left);
      resolve();
    };
    const left = (): void => {
      cancel?.();
      response.off('drain', drained);
      reject(clientGone());
    };
    response.once('drain', drained);
    gone.addEventListener('abort', left);
  });
}

export function clientGone(): HoldfastError {
  return new HoldfastError('aborted', 'The client has gone.');
}
