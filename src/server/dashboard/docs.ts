// The documentation below /docs, as the build made it. It needs no token and tells nothing of this machine. Its files are read when
// they are asked for: an update may replace them, and then a reader gets the pages of what is installed.

import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { errnoOf } from '../../base/disk.ts';
import { builtFile } from '../../base/workers/built-file.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Exchange, Route } from '../http/router.ts';
import { PAGE_HEADERS, SAFE_HEADERS } from './safe-headers.ts';

const MEDIA: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.gif': 'image/gif',
};

/** Its own files and nothing else: no string becomes a script, nothing is sent, nobody may frame it. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** No dot at the beginning, no slash: a name cannot leave its folder. */
const NAME = /^[\w-]+(?:\.[\w-]+)*$/;
/** Its content never changes under this name. */
const HASHED = /\.[0-9a-f]{10}\.\w+$/;

export const docsRoutes: readonly Route[] = [
  { method: 'GET', path: '/docs', anonymous: true, handler: redirect },
  { method: 'GET', path: '/docs/', anonymous: true, handler: sendFile },
  { method: 'GET', path: '/docs/:name', anonymous: true, handler: sendFile },
  { method: 'GET', path: '/docs/:folder/', anonymous: true, handler: sendFile },
  { method: 'GET', path: '/docs/:folder/:name', anonymous: true, handler: sendFile },
];

/** The links of a page are relative to its folder. */
async function redirect({ response }: Exchange): Promise<undefined> {
  response.writeHead(302, { Location: 'docs/', 'Content-Length': 0 }).end();
}

async function sendFile({ response, params }: Exchange): Promise<undefined> {
  const path = [params['folder'], params['name'] ?? 'index.html'].filter(
    (part) => part !== undefined,
  );
  const name = path.join('/');
  const media = MEDIA[extname(name)];
  const body = media && path.every((part) => NAME.test(part)) ? await readBuilt(name) : undefined;
  if (!body)
    throw new HoldfastError('no_route', 'There is no such page in the documentation.', {
      remedy: 'Begin at /docs, or use its search.',
    });
  response.writeHead(200, {
    ...SAFE_HEADERS,
    ...PAGE_HEADERS,
    'Content-Type': media,
    'Content-Length': body.length,
    'Content-Security-Policy': POLICY,
    'Cache-Control': HASHED.test(name) ? 'public, max-age=31536000, immutable' : 'no-cache',
  });
  response.end(body);
}

async function readBuilt(name: string): Promise<Buffer | undefined> {
  try {
    return await readFile(fileURLToPath(builtFile(import.meta.url, `../../docs/${name}`)));
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EISDIR', 'ENAMETOOLONG'].includes(errnoOf(error) ?? ''))
      return undefined;
    throw error;
  }
}
