// Writing an answer at the pace of its reader: whoever awaits this makes the next piece only when there is room for it.

import type { Clock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Exchange } from './router.ts';

/** A client that takes nothing for so long is cut off. */
interface Stall {
  readonly clock: Clock;
  readonly stallMs: number;
}

/** Resolves when the piece has left, or fits; rejects with `aborted` when the client has gone. */
export async function writePaced(
  { response, gone }: Pick<Exchange, 'response' | 'gone'>,
  piece: string | Buffer,
  stall?: Stall,
): Promise<void> {
  if (gone.aborted) throw goneAway();
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
      reject(goneAway());
    };
    response.once('drain', drained);
    gone.addEventListener('abort', left);
  });
}

function goneAway(): HoldfastError {
  return new HoldfastError('aborted', 'The client has gone.');
}
