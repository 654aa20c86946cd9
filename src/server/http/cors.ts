// Pages of origins that were allowed by name: what a browser asks before it sends a page's request (the preflight), and
// the headers without which it keeps the answer from the page. No other origin gets any of them.

import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { HoldfastError } from '../../protocol/errors.ts';

/** How long a browser may remember a preflight. */
const REMEMBERED_SECONDS = 600;
/** What a page may read of an answer besides its body. */
const EXPOSED = 'Mcp-Session-Id, Retry-After, WWW-Authenticate';
const HEADER_NAMES = /^[\w-]{1,64}(, ?[\w-]{1,64}){0,63}$/;

/** A browser's question whether a page may send a request. It carries no token, whatever the request will carry. */
export function isPreflight(method: string, headers: IncomingHttpHeaders): boolean {
  return (
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined
  );
}

/** Lets the page read the answer. Set before anything can be refused: a page shall see a 401 as one. */
export function letPageRead(
  { origin }: IncomingHttpHeaders,
  allowed: ReadonlySet<string>,
  response: ServerResponse,
): void {
  if (origin === undefined || !allowed.has(origin)) return;
  response.setHeader('Access-Control-Allow-Origin', origin);
  response.setHeader('Access-Control-Expose-Headers', EXPOSED);
  response.setHeader('Vary', 'Origin');
}

/** The origin has passed the gate; the request itself will need its token. */
export function answerPreflight(
  headers: IncomingHttpHeaders,
  methods: readonly string[],
  response: ServerResponse,
): void {
  const wanted = headers['access-control-request-headers'] ?? '';
  if (wanted !== '' && !HEADER_NAMES.test(wanted))
    throw new HoldfastError('invalid_input', 'Access-Control-Request-Headers is not a list.');
  if (wanted !== '') response.setHeader('Access-Control-Allow-Headers', wanted);
  // Asked by browsers where a page from the network wants to reach this machine.
  if (headers['access-control-request-private-network'] === 'true')
    response.setHeader('Access-Control-Allow-Private-Network', 'true');
  response.writeHead(204, {
    'Access-Control-Allow-Methods': methods.join(', '),
    'Access-Control-Max-Age': REMEMBERED_SECONDS,
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  });
  response.end();
}
