// Frames on the keeper's socket: a length, the length of a JSON text, the text, and then the raw bytes that the text refers
// to. Bytes are never encoded in JSON.
//
//   0  u32  bytes that follow        4  u32  bytes of JSON        8  JSON, then attachments

import type { Socket } from 'node:net';
import { HoldfastError } from '../protocol/errors.ts';

const PREFIX_BYTES = 8;
/** Above the largest input (16 MiB) and the largest page with its JSON. Sender and receiver refuse more. */
export const MAX_FRAME_BYTES = 32 * 1024 * 1024;

/** Stands in the JSON for attached bytes: their position and length. */
interface BytesReference {
  readonly $bytes: readonly [number, number];
}

/** Throws `too_large` for a message that the receiver would refuse. */
export function encodeFrame(message: unknown): [Buffer, ...Buffer[]] {
  if (!holdsBytes(message)) return [framed(JSON.stringify(message), 0)];
  const attachments: Uint8Array[] = [];
  const text = JSON.stringify(detach(message, attachments));
  const attached = attachments.reduce((total, bytes) => total + bytes.length, 0);
  return [
    framed(text, attached),
    ...attachments.map((bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)),
  ];
}

export function sendFrame(socket: Socket, message: unknown): void {
  const [head, ...attached] = encodeFrame(message);
  if (attached.length === 0) {
    socket.write(head);
    return;
  }
  socket.cork();
  for (const part of [head, ...attached]) socket.write(part);
  socket.uncork();
}

function framed(text: string, attached: number): Buffer {
  const jsonBytes = Buffer.byteLength(text);
  const bytes = PREFIX_BYTES + jsonBytes + attached;
  if (bytes > MAX_FRAME_BYTES) {
    const problem = `A message of ${bytes} bytes is above the limit of ${MAX_FRAME_BYTES}.`;
    throw new HoldfastError('too_large', problem, { bytes, maxBytes: MAX_FRAME_BYTES });
  }
  const head = Buffer.allocUnsafe(PREFIX_BYTES + jsonBytes);
  head.writeUInt32LE(4 + jsonBytes + attached, 0);
  head.writeUInt32LE(jsonBytes, 4);
  head.write(text, PREFIX_BYTES);
  return head;
}

function holdsBytes(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (value instanceof Uint8Array) return true;
  for (const key in value) {
    if (holdsBytes((value as Record<string, unknown>)[key])) return true;
  }
  return false;
}

/**
 * Replaces bytes by references. It must run before JSON.stringify, which calls Buffer's toJSON, an array of numbers, before
 * any replacer.
 */
function detach(value: unknown, attachments: Uint8Array[]): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Uint8Array) {
    const start = attachments.reduce((total, bytes) => total + bytes.length, 0);
    attachments.push(value);
    return { $bytes: [start, value.length] } satisfies BytesReference;
  }
  if (Array.isArray(value)) return value.map((item) => detach(item, attachments));
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, detach(item, attachments)]),
  );
}

/** Parses messages from the chunks of a socket. */
export class FrameReader {
  private readonly chunks: Buffer[] = [];
  private buffered = 0;
  /** Bytes needed for the next step, so that the chunks of a large frame are joined only once. */
  private needed = PREFIX_BYTES;

  /** Yields the messages that these bytes complete. */
  *push(chunk: Buffer): Generator {
    this.chunks.push(chunk);
    this.buffered += chunk.length;
    for (let frame = this.take(); frame !== undefined; frame = this.take())
      yield decodeFrame(frame);
  }

  private take(): Buffer | undefined {
    if (this.buffered < this.needed) return undefined;
    const first = this.front(PREFIX_BYTES);
    const length = 4 + first.readUInt32LE(0);
    if (length > MAX_FRAME_BYTES || first.readUInt32LE(4) > length - PREFIX_BYTES) {
      throw new HoldfastError(
        'invalid_input',
        'The other side of the socket does not speak the keeper protocol.',
      );
    }
    this.needed = length;
    if (this.buffered < length) return undefined;
    this.needed = PREFIX_BYTES;
    const all = this.front(length);
    const rest = all.subarray(length);
    this.chunks.length = 0;
    if (rest.length > 0) this.chunks.push(rest);
    this.buffered = rest.length;
    return all.subarray(0, length);
  }

  /** The buffered bytes in one piece, at least `bytes`; joins chunks only if a frame spans them. */
  private front(bytes: number): Buffer {
    const [first] = this.chunks;
    if (first && first.length >= bytes && this.chunks.length === 1) return first;
    const joined = Buffer.concat(this.chunks);
    this.chunks.length = 0;
    this.chunks.push(joined);
    return joined;
  }
}

/** Of one whole frame. */
export function decodeFrame(frame: Buffer): unknown {
  const jsonBytes = frame.readUInt32LE(4);
  const attachments = frame.subarray(PREFIX_BYTES + jsonBytes);
  const text = frame.toString('utf8', PREFIX_BYTES, PREFIX_BYTES + jsonBytes);
  if (attachments.length === 0 && !text.includes('"$bytes"')) return JSON.parse(text);
  return JSON.parse(text, (_key, value: unknown) => {
    if (!isReference(value)) return value;
    const [start, length] = value.$bytes;
    if (start + length > attachments.length)
      throw new HoldfastError('invalid_input', 'A frame refers to bytes it lacks.');
    return attachments.subarray(start, start + length);
  });
}

function isReference(value: unknown): value is BytesReference {
  if (typeof value !== 'object' || value === null || !('$bytes' in value)) return false;
  const { $bytes } = value;
  return (
    Array.isArray($bytes) &&
    $bytes.length === 2 &&
    $bytes.every((part) => Number.isSafeInteger(part) && part >= 0)
  );
}
