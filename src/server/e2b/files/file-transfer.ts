// Files over HTTP: downloads and uploads of any size at the client's pace, by token or by a signed address.

import { hash, timingSafeEqual } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';
import { createGunzip, createGzip } from 'node:zlib';
import type { Readable } from 'node:stream';
import type { Clock } from '../../../base/clock.ts';
import { errnoOf } from '../../../base/disk.ts';
import { RpcError } from '../../codex/rpc.ts';
import {
  makeFolder,
  openToRead,
  openToWrite,
  type PathOptions,
} from '../../codex/fs/opened-path.ts';
import { bytePath, parentOf } from '../../codex/fs/uri.ts';
import { writePaced } from '../../http/paced-write.ts';
import type { Exchange } from '../../http/router.ts';
import type { Target } from '../target.ts';
import { E2bError, fileError } from '../errors.ts';
import { invalid } from '../messages.ts';
import { boundaryOf, readParts } from './multipart.ts';
import type { SandboxPaths } from './sandbox-paths.ts';
import { sandboxOwner, type SandboxStore } from '../sandbox-store.ts';
import type { SandboxTokens } from '../sandbox-tokens.ts';
import { checkBasicUser, checkUser, expandPath, ownUser } from '../users.ts';

interface FileTransferOptions {
  readonly paths: SandboxPaths;
  readonly store: SandboxStore;
  readonly tokens: SandboxTokens;
  readonly clock: Clock;
  readonly target: (exchange: Exchange) => Target;
}

/** The whole of an upload has no limit in time; a sender that sends nothing for this long is cut off. */
const STALL_MS = 30_000;
const PIECE_BYTES = 256 * 1024;

interface Written {
  readonly name: string;
  readonly type: 'file';
  readonly path: string;
}

export class FileTransfer {
  private readonly options: FileTransferOptions;

  constructor(options: FileTransferOptions) {
    this.options = options;
  }

  async download(exchange: Exchange): Promise<undefined> {
    const { query, request } = exchange;
    const path = expandPath(query.get('path') ?? '', ownUser().home);
    const access = await this.accessOf(exchange, 'read');
    let file: FileHandle;
    try {
      file = await openToRead(bytePath(path), access);
    } catch (error) {
      throw readError(error, path);
    }
    try {
      if (request.headers['accept-encoding'] === 'gzip') await sendCompressed(exchange, file, path);
      else await sendFile(exchange, file, path);
    } finally {
      await file.close();
    }
    return undefined;
  }

  async upload(exchange: Exchange): Promise<unknown> {
    const { headers } = exchange.request;
    const access = await this.accessOf(exchange, 'write');
    if (Object.keys(headers).some((name) => name.startsWith('x-metadata-')))
      throw invalid('metadata of files is not kept here: upload without it');
    const named = exchange.query.get('path');
    const type = headers['content-type'] ?? '';
    const body = this.bodyOf(exchange);
    if (/^multipart\/form-data/i.test(type))
      return uploadParts(readParts(body, boundaryOf(type)), named, access);
    if (!/^application\/octet-stream/i.test(type))
      throw invalid('Content-Type must be multipart/form-data or application/octet-stream');
    if (named === null || named === '') throw invalid('the query has no path');
    return [await writeFile(named, body, access)];
  }

  /** The chunks of the request, unpacked, each within the stall time. */
  private async *bodyOf({ request }: Exchange): AsyncGenerator<Buffer> {
    const { clock } = this.options;
    const encoding = request.headers['content-encoding'] ?? 'identity';
    if (encoding !== 'gzip' && encoding !== 'identity')
      throw invalid(`Content-Encoding "${encoding}" is not supported`);
    const source: Readable =
      encoding === 'gzip'
        ? request.pipe(createGunzip()).once('error', () => request.unpipe())
        : request;
    const stall = (): (() => void) => clock.after(STALL_MS, () => request.destroy());
    let cancel = stall();
    try {
      for await (const chunk of source as AsyncIterable<Buffer>) {
        cancel();
        yield chunk;
        cancel = stall();
      }
    } catch (error) {
      if (String(errnoOf(error)).startsWith('Z_')) throw invalid('the body is not gzip');
      throw error;
    } finally {
      cancel();
    }
  }

  /** Without a token the address must be signed. */
  private accessOf(exchange: Exchange, operation: 'read' | 'write'): Promise<PathOptions> {
    const { query, request, caller } = exchange;
    const user = query.get('username') ?? '';
    checkUser(user);
    checkBasicUser(request.headers);
    const isSigned = caller.tokenId === 'nobody';
    const target = isSigned ? this.signedTarget(query, operation) : this.options.target(exchange);
    return this.options.paths.optionsFor(target);
  }

  /** The address does not name its sandbox: the one whose token gives this signature. */
  private signedTarget(query: URLSearchParams, operation: 'read' | 'write'): Target {
    const { store, tokens, clock } = this.options;
    const [path, user, shown] = ['path', 'username', 'signature'].map(
      (name) => query.get(name) ?? '',
    );
    const until = query.get('signature_expiration');
    if (shown === '') throw new E2bError('unauthenticated', 'a signature is needed');
    const sandbox = store.all().find(({ id }) => {
      const end = until === null ? '' : `:${until}`;
      const text = `${path}:${operation}:${user}:${tokens.tokenOf(id)}${end}`;
      const expected = `v1_${hash('sha256', text, 'base64').replace(/=+$/, '')}`;
      return isEqual(expected, shown ?? '');
    });
    if (!sandbox) throw new E2bError('unauthenticated', 'invalid signature');
    if (until !== null && !(Number(until) * 1000 > clock.wallMs()))
      throw new E2bError('unauthenticated', 'signature is already expired');
    return { owner: sandboxOwner(sandbox), sandbox, admin: false };
  }
}

function isEqual(expected: string, shown: string): boolean {
  const [one, two] = [Buffer.from(expected), Buffer.from(shown)];
  return one.length === two.length && timingSafeEqual(one, two);
}

function readError(error: unknown, path: string): E2bError {
  if (error instanceof RpcError) return invalid(`path '${path}' is a directory or a device`);
  return fileError(error, path);
}

async function uploadParts(
  parts: ReturnType<typeof readParts>,
  named: string | null,
  access: PathOptions,
): Promise<Written[]> {
  const written: Written[] = [];
  for await (const { name, filename, content } of parts) {
    if (name !== 'file') continue;
    const path = expandPath(named || filename, '');
    if (path === '') throw invalid('a part has no file name');
    if (written.some((each) => each.path === path))
      throw invalid(`you cannot upload multiple files to the same path ${path}`);
    written.push(await writeFile(path, content, access));
  }
  return written;
}

async function writeFile(
  named: string,
  content: AsyncIterable<Buffer>,
  access: PathOptions,
): Promise<Written> {
  const path = expandPath(named, '');
  try {
    const bytes = bytePath(path);
    await makeFolder(parentOf(bytes), true, access);
    const file = await openToWrite(bytes, access);
    try {
      await file.truncate(0);
      for await (const chunk of content) await file.writeFile(chunk);
    } finally {
      await file.close();
    }
  } catch (error) {
    if (error instanceof RpcError) throw invalid(`path '${path}' is not a file`);
    throw fileError(error, path);
  }
  return { name: basename(path), type: 'file', path };
}

function headersOf(path: string): Record<string, string> {
  const name = encodeURIComponent(basename(path));
  return {
    'Content-Type': 'application/octet-stream',
    'Content-Disposition': `inline; filename*=utf-8''${name}`,
    'Content-Security-Policy': "default-src 'none'; sandbox",
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': 'no-store',
    Vary: 'Accept-Encoding',
  };
}

async function sendFile(exchange: Exchange, file: FileHandle, path: string): Promise<void> {
  const { response, request } = exchange;
  const { size, mtime } = await file.stat();
  const range = rangeOf(request.headers.range, size);
  const [from, to] = range ?? [0, size];
  response.writeHead(range ? 206 : 200, {
    ...headersOf(path),
    'Content-Length': to - from,
    'Last-Modified': mtime.toUTCString(),
    'Accept-Ranges': 'bytes',
    ...(range && { 'Content-Range': `bytes ${from}-${to - 1}/${size}` }),
  });
  for (let at = from; at < to;) {
    const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, to - at));
    const { bytesRead } = await file.read(piece, 0, piece.length, at);
    // The file became shorter: the promised length cannot be kept.
    if (bytesRead === 0) return void response.destroy();
    await writePaced(exchange, piece.subarray(0, bytesRead), exchange.unread);
    at += bytesRead;
  }
  response.end();
}

async function sendCompressed(exchange: Exchange, file: FileHandle, path: string): Promise<void> {
  exchange.response.writeHead(200, { ...headersOf(path), 'Content-Encoding': 'gzip' });
  const packed = file.createReadStream({ autoClose: false }).pipe(createGzip());
  for await (const piece of packed as AsyncIterable<Buffer>)
    await writePaced(exchange, piece, exchange.unread);
  exchange.response.end();
}

/** One range of bytes; undefined for the whole file. */
function rangeOf(header: string | undefined, size: number): [number, number] | undefined {
  const [, first, last] = /^bytes=(\d{1,15})-(\d{0,15})$/.exec(header ?? '') ?? [];
  if (first === undefined || Number(first) >= size) return undefined;
  const end = last === '' || last === undefined ? size : Math.min(size, Number(last) + 1);
  return Number(first) < end ? [Number(first), end] : undefined;
}
