// Writes the events of a process to a client of the server, on the client's own connection, as a chunked body. The stream
// goes on when the server has died.

import { systemClock } from '../base/clock.ts';
import type { CancelSignal } from '../base/cancel-signal.ts';
import { randomId } from '../base/ids.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { Page } from '../protocol/host-api.ts';
import { PACE_BYTES } from '../protocol/limits.ts';
import type { Params } from '../protocol/operations.ts';
import { streamNamed } from '../protocol/rendering/renderers.ts';
import type { BorrowedSocket, Delivery, FollowedProcess } from './borrowed-socket.ts';

/** Small: the keeper has other clients between two pages. */
const PAGE_BYTES = 64 * 1024;
const LAST_CHUNK = '0\r\n\r\n';

export async function writeStream(
  to: BorrowedSocket,
  delivery: Delivery & FollowedProcess,
  read: (params: Params<'read'>) => Promise<Page>,
  signal: CancelSignal,
): Promise<void> {
  const Stream = streamNamed(delivery.render);
  if (!Stream) throw new Error(`there is no stream "${delivery.render}"`);
  const now = (): number => systemClock.nowUs() / 1000;
  const { id, ...params } = delivery.params;
  const stream = new Stream(params, now());
  const pace = { maxBytes: PAGE_BYTES, paceBytes: PACE_BYTES, reader: randomId() };
  const head = Buffer.from(`${to.headOf(delivery)}Transfer-Encoding: chunked\r\n\r\n`);
  await to.send(Buffer.concat([head, chunk(stream.begin())]));
  for (let next = stream.next(now()); next; next = stream.next(now())) {
    let bytes: Buffer;
    try {
      const page = await read({ id, ...next, ...pace });
      bytes = stream.take(page, now());
    } catch (error) {
      // The status has been sent: the body says it.
      if (signal.aborted || !(error instanceof HoldfastError)) throw error;
      bytes = stream.fail(error.message);
    }
    if (signal.aborted) throw new HoldfastError('aborted', 'The client has gone.');
    const isLast = stream.next(now()) === undefined;
    if (bytes.length > 0 || isLast)
      await to.send(Buffer.concat([chunk(bytes), Buffer.from(isLast ? LAST_CHUNK : '')]));
  }
}

function chunk(bytes: Buffer): Buffer {
  if (bytes.length === 0) return bytes;
  return Buffer.concat([
    Buffer.from(`${bytes.length.toString(16)}\r\n`),
    bytes,
    Buffer.from('\r\n'),
  ]);
}
