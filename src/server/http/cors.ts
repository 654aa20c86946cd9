// CORS for pages of origins that were allowed by name: the answer to a preflight, and the headers that let the page
// read an answer. No other origin gets any of these headers.

import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { HoldfastError } from '../../protocol/errors.ts';

const REMEMBERED_SECONDS = 600;
/** The response headers that a page may read. */
const EXPOSED = 'Mcp-Session-Id, Retry-After, WWW-Authenticate';
const HEADER_NAMES = /^[\w-]{1,64}(, ?[\w-]{1,64}){0,63}$/;

/** A preflight never carries a token, even if the request that follows will. */
export function isPreflight(method: string, headers: IncomingHttpHeaders): boolean {
  return (
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined
  );
}

/** Called before anything can be refused, so that a page sees a 401 as a 401. */
export function allowPageToRead(
  { origin }: IncomingHttpHeaders,
  allowed: ReadonlySet<string>,
  response: ServerResponse,
): void {
  if (origin === undefined || !allowed.has(origin)) return;
  response.setHeader('Access-Control-Allow-Origin', origin);
  response.setHeader('Access-Control-Expose-Headers', EXPOSED);
  response.setHeader('Vary', 'Origin');
}

/** The gate has accepted the origin. The request itself will still need its token. */
export function answerPreflight(
  headers: IncomingHttpHeaders,
  methods: readonly string[],
  response: ServerResponse,
): void {
  const wanted = headers['access-control-request-headers'] ?? '';
  if (wanted !== '' && !HEADER_NAMES.test(wanted))
    throw new HoldfastError('invalid_input', 'Access-Control-Request-Headers is not a list.');
  if (wanted !== '') response.setHeader('Access-Control-Allow-Headers', wanted);
  // Browsers ask this when a page from the network wants to reach this machine.
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
