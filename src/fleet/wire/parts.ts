// Messages above the size of one NATS message: split into numbered parts, and joined again on the other side.

import { HoldfastError } from '../../protocol/errors.ts';

/** Half of NATS's usual limit of 1 MiB, so that headers and other limits do not matter. */
const PART_BYTES = 512 * 1024;
/** As on the keeper's socket. */
const MAX_BYTES = 32 * 1024 * 1024;
const MOST_PARTS = MAX_BYTES / PART_BYTES;

export interface Part {
  readonly bytes: Buffer;
  /** "2/5"; absent for a message of one part. */
  readonly part?: string;
}

export function splitParts(pieces: readonly Buffer[]): Part[] {
  const [first = Buffer.alloc(0)] = pieces;
  // A copy, so that the memory of a page can be used again at once.
  const whole = pieces.length === 1 ? first : Buffer.concat(pieces);
  if (whole.length <= PART_BYTES) return [{ bytes: whole }];
  const count = Math.ceil(whole.length / PART_BYTES);
  return Array.from({ length: count }, (_, index) => ({
    bytes: whole.subarray(index * PART_BYTES, (index + 1) * PART_BYTES),
    part: `${index + 1}/${count}`,
  }));
}

/** The parts of one message, in order. */
export class PartCollector {
  private readonly parts: Buffer[] = [];
  bytes = 0;

  /** The whole message if this part completes it. A part out of order belongs to a message that was lost: it is ignored. */
  add({
    bytes,
    part,
  }: {
    readonly bytes: Buffer;
    readonly part: string | undefined;
  }): Buffer | undefined {
    if (part === undefined) return bytes;
    const [index, count] = readPart(part);
    if (index === 1) {
      this.parts.length = 0;
      this.bytes = 0;
    }
    if (index !== this.parts.length + 1) return undefined;
    this.parts.push(bytes);
    this.bytes += bytes.length;
    return index === count ? Buffer.concat(this.parts) : undefined;
  }
}

function readPart(part: string): [index: number, count: number] {
  const [index = 0, count = 0] = part.split('/').map(Number);
  const valid = Number.isSafeInteger(index) && index >= 1 && index <= count;
  if (valid && count <= MOST_PARTS) return [index, count];
  throw new HoldfastError('invalid_input', `"${part.slice(0, 40)}" is not a part of a message.`);
}
