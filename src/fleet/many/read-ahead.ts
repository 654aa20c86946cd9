// Asks for the next pieces of an output while a reader that goes from piece to piece takes the present one. Without it each
// piece costs a round trip through NATS.

import type { Clock } from '../../base/clock.ts';
import type { Owner, Results } from '../../protocol/host-api.ts';
import type { Params } from '../../protocol/operations.ts';

type Range = Results['range'];
type Fetch = (params: Params<'range'>) => Promise<Range>;

/** A larger piece costs more than its round trip. */
const MAX_PIECE_BYTES = 512 * 1024;
const DEPTH = 3;
/** Of all readers: at most 16 MiB. */
const MOST_PIECES = 32;
/** A reader that stops leaves its pieces behind for this long. */
const KEPT_MS = 2000;

export class ReadAhead {
  private readonly clock: Clock;
  private readonly pieces = new Map<string, { piece: Promise<Range>; drop: () => void }>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  async range(owner: Owner, params: Params<'range'>, fetch: Fetch): Promise<Range> {
    const { maxBytes, offset } = params;
    if (maxBytes === undefined || maxBytes > MAX_PIECE_BYTES) return fetch(params);
    const key = keyOf(owner, params);
    const ahead = this.pieces.get(key);
    if (!ahead) return this.first(owner, params, fetch);
    ahead.drop();
    this.fetchAhead(owner, { ...params, maxBytes }, fetch);
    const range = await ahead.piece;
    return isWhole(range, offset, maxBytes) ? range : fetch(params);
  }

  private async first(owner: Owner, params: Params<'range'>, fetch: Fetch): Promise<Range> {
    const range = await fetch(params);
    const { maxBytes = 0 } = params;
    const next = range.offset + range.bytes.length;
    if (isWhole(range, params.offset, maxBytes) && next + maxBytes <= range.totalBytes)
      this.add(owner, { ...params, offset: next }, fetch);
    return range;
  }

  /** The reader goes on: the pieces behind the one that it takes now. */
  private fetchAhead(
    owner: Owner,
    params: Params<'range'> & { readonly maxBytes: number },
    fetch: Fetch,
  ): void {
    for (let step = 1; step <= DEPTH; step += 1)
      this.add(owner, { ...params, offset: params.offset + step * params.maxBytes }, fetch);
  }

  private add(owner: Owner, params: Params<'range'>, fetch: Fetch): void {
    const key = keyOf(owner, params);
    if (this.pieces.has(key) || this.pieces.size >= MOST_PIECES) return;
    const piece = fetch(params);
    // Who asks for it gets the error; nobody may.
    piece.catch(() => undefined);
    const cancel = this.clock.after(KEPT_MS, () => this.pieces.delete(key));
    const drop = (): void => {
      cancel();
      this.pieces.delete(key);
    };
    this.pieces.set(key, { piece, drop });
  }
}

/** A piece that was short when it was fetched may be longer now. */
function isWhole({ offset, bytes }: Range, asked: number, maxBytes: number): boolean {
  return offset === asked && bytes.length === maxBytes;
}

function keyOf(owner: Owner, { id, offset, maxBytes }: Params<'range'>): string {
  return JSON.stringify([owner, id, offset, maxBytes]);
}
