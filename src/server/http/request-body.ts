// Reads the body of a request: JSON, of a bounded size, and only after the gate has accepted the sender.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { systemClock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Dialect, Route } from './router.ts';
import { clientGone } from './paced-write.ts';
const NO_BODY = Buffer.alloc(0);

export function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  { maxBytes, dialect, kind }: { maxBytes: number; dialect: Dialect; kind: Route['body'] },
): Promise<Buffer> | Buffer {
  if (!hasBody(request)) return NO_BODY;
  if (kind === 'stream') {
    if (request.headers.expect !== undefined) response.writeContinue();
    return NO_BODY;
  }
  const { 'content-length': length, 'content-type': type } = request.headers;
  if (Number(length ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const json =
    type === undefined ? dialect.lenientType === true : /^application\/json\s*(;|$)/i.test(type);
  if (!json && kind !== 'any') throw new HoldfastError('not_json', 'Only JSON bodies are taken.');
  if (request.headers.expect !== undefined) response.writeContinue();
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const take = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > maxBytes) {
        request.off('data', take).pause();
        reject(tooLarge(maxBytes));
      } else chunks.push(chunk);
    };
    request.on('data', take);
    const cut = (): void => reject(clientGone());
    request.once('end', () => {
      // An error costs more than the rest of this function, also one that nobody sees.
      request.off('close', cut);
      const body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
      if (kind !== 'any' && hasTooManyValues(body)) reject(tooManyValues());
      else resolve(body);
    });
    request.once('error', cut);
    request.once('close', cut);
  });
}

/** Of a body that was refused, this much is read and thrown away, for this long. */
const MOST_DISCARDED_BYTES = 8 * 1024 * 1024;
const MOST_DISCARDING_MS = 10_000;

/**
 * Calls back when the client has sent its body, or too much of it. A connection that is closed before that is reset, and
 * a client that is still sending loses the answer.
 */
export function discardRest(request: IncomingMessage, done: () => void): void {
  let left = MOST_DISCARDED_BYTES;
  const end = (): void => {
    cancel();
    request.off('data', count).off('end', end).off('close', end);
    done();
  };
  const cancel = systemClock.after(MOST_DISCARDING_MS, end);
  const count = (chunk: Buffer): void => {
    left -= chunk.length;
    if (left < 0) end();
  };
  request.on('data', count).once('end', end).once('close', end).resume();
}

/** An upgrade request is followed by the other protocol, or by nothing. */
export function bodyless(request: IncomingMessage): Buffer {
  if (hasBody(request))
    throw new HoldfastError('invalid_input', 'A request to upgrade has no body.');
  return NO_BODY;
}

export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
}

function tooLarge(maxBytes: number): HoldfastError {
  return new HoldfastError('too_large', `The body is larger than ${maxBytes} bytes.`);
}

/**
 * Checking a body takes some microseconds per value, here and again in the keeper; a start with this many takes 30 ms.
 */
const MAX_VALUES = 20_000;
const [QUOTE, BACKSLASH, OPEN_LIST, OPEN, COMMA] = Buffer.from('"\\[{,');

/** For a body that is not JSON as a whole. */
export function refuseTooManyValues(json: Buffer): void {
  if (hasTooManyValues(json)) throw tooManyValues();
}

/** Counted before parsing: outside of strings, each of these bytes is followed by at most one value. */
function hasTooManyValues(json: Buffer): boolean {
  // A value and its separator take at least two bytes.
  if (json.length < 2 * MAX_VALUES) return false;
  let values = 0;
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at];
    if (byte === QUOTE) at = stringEnd(json, at);
    else if (byte === COMMA || byte === OPEN || byte === OPEN_LIST) {
      values += 1;
      if (values > MAX_VALUES) return true;
    }
  }
  return false;
}

function stringEnd(json: Buffer, from: number): number {
  for (let at = from + 1; at < json.length; at += 1) {
    const byte = json[at];
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at += 1;
  }
  return json.length;
}

function tooManyValues(): HoldfastError {
  return new HoldfastError('too_large', `The body has more than ${MAX_VALUES} values.`);
}
