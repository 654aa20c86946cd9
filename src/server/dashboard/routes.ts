// The dashboard's page and its assets. They need no token and tell nothing; what the page shows it asks for with the token
// that its sign-in got.

import { randomBytes } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Exchange, Route } from '../http/router.ts';
import { lazyModules } from '../lazy-modules.ts';
import { PAGE_HEADERS, SAFE_HEADERS } from './safe-headers.ts';

/** Stands in the built page wherever a nonce belongs. */
const NONCE = /holdfast-nonce/g;

/** Scripts only from here, no string becomes a script, nothing is loaded from elsewhere, nobody may frame it. */
function policyOf(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' blob: data:",
    "font-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
}

export const dashboardRoutes: readonly Route[] = [
  { method: 'GET', path: '/', anonymous: true, handler: sendPage },
  { method: 'GET', path: '/assets/:name', anonymous: true, handler: sendAsset },
];

async function sendPage({ response }: Exchange): Promise<undefined> {
  const { page } = await lazyModules.dashboard();
  // xterm.js makes style elements; only those with this nonce count.
  const nonce = randomBytes(16).toString('base64url');
  const body = Buffer.from(page.replace(NONCE, nonce));
  response.writeHead(200, {
    ...SAFE_HEADERS,
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Length': body.length,
    'Content-Security-Policy': policyOf(nonce),
    ...PAGE_HEADERS,
    'Cache-Control': 'no-store',
  });
  response.end(body);
}

async function sendAsset({ request, response, params }: Exchange): Promise<undefined> {
  const { assets } = await lazyModules.dashboard();
  const asset = assets.get(params['name'] ?? '');
  if (!asset) throw new HoldfastError('no_route', 'There is no such file; reload the page.');
  const packed = /\bgzip\b/.test(request.headers['accept-encoding'] ?? '');
  const body = packed ? asset.gzip : gunzipSync(asset.gzip);
  response.writeHead(200, {
    ...SAFE_HEADERS,
    'Content-Type': asset.media,
    'Content-Length': body.length,
    ...(packed && { 'Content-Encoding': 'gzip' }),
    Vary: 'Accept-Encoding',
    // The name has a hash of the content in it.
    'Cache-Control': 'public, max-age=31536000, immutable',
  });
  response.end(body);
}

/** The origins under which a browser may have loaded the page, exactly: another port is another program. */
export function ownOrigins(
  names: readonly string[],
  port: number,
  /** Names under which a proxy in front with TLS may be asked; without those of any port. */
  allowed: Iterable<string>,
): string[] {
  const proxied = Array.from(allowed).filter((host) => !host.endsWith(':*'));
  return [...names.map((name) => `http://${name}:${port}`), ...proxied.map((h) => `https://${h}`)];
}
