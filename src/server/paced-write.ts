// Writing an answer at the pace of its reader: whoever awaits this makes the next piece only when there is room for it.

import { HoldfastError } from '../protocol/errors.ts';
import type { Exchange } from './router.ts';

/** Resolves when the piece has left, or fits; rejects with `aborted` when the client has gone. */
export async function writePaced(
  { response, gone }: Pick<Exchange, 'response' | 'gone'>,
  piece: string | Buffer,
): Promise<void> {
  if (gone.aborted) throw goneAway();
  if (response.write(piece)) return;
  await new Promise<void>((resolve, reject) => {
    const drained = (): void => {
      gone.removeEventListener('abort', left);
      resolve();
    };
    const left = (): void => {
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
