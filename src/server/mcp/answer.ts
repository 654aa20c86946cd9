// Sends what the MCP library answers. An answer that is one message within a second, as of most tools, is sent as JSON: in one
// piece, and a client needs half the time for it that it needs for an event stream. Anything else is streamed.

import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../base/clock.ts';
import { writePaced } from '../http/paced-write.ts';
import type { Exchange } from '../http/router.ts';
import { JSON_HEADERS } from '../http/unread-answers.ts';

/** A stream begins by then: a proxy may give up on a server that sends no headers. */
const STREAM_AFTER_MS = 1000;
/** Around the message of an event, as the library writes it. */
const EVENT = { before: Buffer.from('event: message\ndata: '), after: Buffer.from('\n\n') };
const LINE_END = 10;

type Reading = ReturnType<ReadableStreamDefaultReader<Uint8Array>['read']>;

/** At the client's pace. When the client disconnects, the library sees its stream cancelled. */
export async function sendAnswer(
  exchange: Exchange,
  answer: Response,
  clock: Clock,
): Promise<void> {
  const { request, response, gone } = exchange;
  const { 'Cache-Control': cache, 'X-Content-Type-Options': sniff } = JSON_HEADERS;
  const safe = { 'Cache-Control': cache, 'X-Content-Type-Options': sniff };
  const headers = { ...safe, ...Object.fromEntries(answer.headers) };
  const reader = answer.body?.getReader();
  if (!reader) {
    response.writeHead(answer.status, headers).end();
    return;
  }
  const cancel = (): void => void reader.cancel();
  gone.addEventListener('abort', cancel);
  try {
    const readings = [reader.read(), reader.read()] as const;
    // The stream of notifications is a GET: its client waits for the headers.
    const message = request.method === 'POST' ? await onlyMessage(readings, clock) : undefined;
    if (gone.aborted) return;
    if (message) {
      const session = answer.headers.get('mcp-session-id');
      response.writeHead(answer.status, {
        ...JSON_HEADERS,
        ...(session !== null && { 'Mcp-Session-Id': session }),
        'Content-Length': message.length,
      });
      response.end(message);
      return;
    }
    response.writeHead(answer.status, headers).flushHeaders();
    const ahead: Reading[] = [...readings];
    for (;;) {
      const { done, value } = await (ahead.shift() ?? reader.read());
      if (done) break;
      await writePaced(exchange, bytesOf(value));
    }
    response.end();
  } finally {
    gone.removeEventListener('abort', cancel);
  }
}

/** The message of a stream that has one event and ends with it; undefined for any other, and for one that takes long. */
async function onlyMessage(
  [one, two]: readonly [Reading, Reading],
  clock: Clock,
): Promise<Buffer | undefined> {
  // If the stream fails, the first reading reports it.
  two.catch(() => undefined);
  let cancel = (): void => undefined;
  const late = new Promise<undefined>((resolve) => {
    cancel = clock.after(STREAM_AFTER_MS, () => resolve(undefined));
  });
  const first = await Promise.race([one, late]);
  cancel();
  if (!first?.value) return undefined;
  // The library ends a stream in the same turn as its last event.
  const second = await Promise.race([two, turn(undefined)]);
  return second?.done ? messageOf(bytesOf(first.value)) : undefined;
}

function messageOf(event: Buffer): Buffer | undefined {
  const { before, after } = EVENT;
  const message = event.subarray(before.length, -after.length);
  const isOne =
    event.subarray(0, before.length).equals(before) &&
    event.subarray(-after.length).equals(after) &&
    !message.includes(LINE_END);
  return isOne ? message : undefined;
}

function bytesOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
