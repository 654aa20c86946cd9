// The output of a process as raw bytes: one range, or a stream of everything retained, at the client's pace. Browsers
// save it and never display it, because a program wrote it.

import type { HostApi, Owner } from '../../protocol/host-api.ts';
import { LARGE_BYTES, sendBytes } from '../http/unread-answers.ts';
import { writePaced } from '../http/paced-write.ts';
import type { Exchange } from '../http/router.ts';

const PIECE_BYTES = 256 * 1024;

export interface DownloadTarget {
  readonly owner: Owner;
  readonly id: string;
  readonly offset: number;
  readonly maxBytes: number | undefined;
}

export async function download(
  exchange: Exchange,
  target: DownloadTarget,
  host: HostApi,
): Promise<void> {
  const { maxBytes, offset } = target;
  const process = await host.get(target.owner, { id: target.id });
  const { id, owner } = process;
  if (maxBytes === undefined) {
    const { total, dropped, lost } = process.bytes;
    const missed = Math.min(dropped + lost, Math.max(0, total - offset));
    exchange.response.writeHead(200, {
      ...headersFor(id, { offset, total, missed }),
      Trailer: 'Holdfast-Skipped-Bytes',
    });
    await stream(exchange, { owner, id, from: offset, to: total }, host);
    return;
  }
  if (maxBytes > LARGE_BYTES) await exchange.unread.begin(exchange);
  const range = await host.range(owner, { id, offset, maxBytes });
  const { bytes, missedBytes, totalBytes } = range;
  const sizes = { offset: range.offset, total: totalBytes, missed: missedBytes };
  const headers = { ...headersFor(id, sizes), 'Holdfast-End': String(range.end) };
  await sendBytes(exchange, headers, bytes);
}

async function stream(
  exchange: Exchange,
  part: { owner: Owner; id: string; from: number; to: number },
  host: HostApi,
): Promise<void> {
  const { owner, id, to } = part;
  let skipped = 0;
  for (let at = part.from; at < to;) {
    const maxBytes = Math.min(PIECE_BYTES, to - at);
    const { offset, bytes } = await host.range(owner, { id, offset: at, maxBytes }, exchange.gone);
    // Everything behind `offset` is beyond the promised end or no longer retained.
    const fits = bytes.subarray(0, Math.max(0, to - offset));
    if (fits.length === 0) {
      skipped += to - at;
      break;
    }
    skipped += offset - at;
    await writePaced(exchange, fits);
    at = offset + fits.length;
  }
  exchange.response.addTrailers({ 'Holdfast-Skipped-Bytes': String(skipped) });
  exchange.response.end();
}

function headersFor(
  id: string,
  { offset, total, missed }: { offset: number; total: number; missed: number },
): Record<string, string> {
  return {
    'Content-Type': 'application/octet-stream',
    'Content-Disposition': `attachment; filename="${id}.out"`,
    'Content-Security-Policy': "default-src 'none'; sandbox",
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': 'no-store',
    'Holdfast-Offset': String(offset),
    'Holdfast-Total-Bytes': String(total),
    'Holdfast-Missed-Bytes': String(missed),
  };
}
