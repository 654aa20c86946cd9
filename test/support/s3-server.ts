// A small S3 for tests: it keeps objects in memory, and checks the signature of every request, in its header or its query.

import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onCleanup } from './hosts.ts';

export interface TestS3 {
  readonly endpoint: string;
  readonly objects: Map<string, Buffer>;
  /** Method and path of each request that was let in, with how it was signed. */
  readonly seen: string[];
  /** Every request is refused with 503 while it is away. */
  away: boolean;
}

export const CREDENTIALS = { accessKeyId: 'AKTEST', secretAccessKey: 'secret' } as const;

export async function startS3(): Promise<TestS3> {
  const objects = new Map<string, Buffer>();
  const state = { endpoint: '', objects, seen: [] as string[], away: false };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      const url = new URL(request.url ?? '', state.endpoint);
      const how = signedBy(request, url, body);
      if (state.away || how === undefined) {
        response.writeHead(state.away ? 503 : 403).end();
        return;
      }
      state.seen.push(`${request.method} ${url.pathname} ${how}`);
      const key = decodeURIComponent(url.pathname).slice(1);
      const prefix = url.searchParams.get('prefix');
      if (request.method === 'PUT') objects.set(key, body);
      if (request.method === 'DELETE') objects.delete(key);
      if (request.method !== 'GET') response.end();
      else if (prefix !== null) {
        const keys = [...objects.keys()].filter((each) => each.startsWith(`${key}/${prefix}`));
        const rows = keys.map(
          (each) => `<Contents><Key>${each.slice(key.length + 1)}</Key></Contents>`,
        );
        response.end(`<ListBucketResult>${rows.join('')}</ListBucketResult>`);
      } else {
        const found = objects.get(key);
        response.writeHead(found ? 200 : 404).end(found);
      }
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  state.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  onCleanup(() => {
    server.closeAllConnections();
    server.close();
  });
  return state;
}

function hex(text: string | Buffer): string {
  return createHash('sha256').update(text).digest('hex');
}

/** "header" or "query"; undefined for a signature that is not right. Of AWS's Signature Version 4. */
function signedBy(request: IncomingMessage, url: URL, body: Buffer): string | undefined {
  const inQuery = url.searchParams.has('X-Amz-Signature');
  const header = /Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]+)/.exec(
    request.headers.authorization ?? '',
  );
  const [credential, names, signature] = inQuery
    ? ['X-Amz-Credential', 'X-Amz-SignedHeaders', 'X-Amz-Signature'].map(
        (name) => url.searchParams.get(name) ?? '',
      )
    : [header?.[1] ?? '', header?.[2] ?? '', header?.[3] ?? ''];
  const [id, date = '', region = '', service = ''] = (credential ?? '').split('/');
  if (id !== CREDENTIALS.accessKeyId) return undefined;
  const escape = (text: string): string =>
    encodeURIComponent(text).replace(
      /[!'()*]/g,
      (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`,
    );
  const query = [...url.searchParams]
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => `${escape(name)}=${escape(value)}`)
    .sort()
    .join('&');
  const headers = (names ?? '')
    .split(';')
    .map((name) => `${name}:${String(request.headers[name]).trim()}\n`);
  const given = request.headers['x-amz-content-sha256'] as string | undefined;
  if (given !== undefined && given !== 'UNSIGNED-PAYLOAD' && given !== hex(body)) return undefined;
  const at = (
    inQuery ? url.searchParams.get('X-Amz-Date') : request.headers['x-amz-date']
  ) as string;
  const asked = [
    request.method,
    url.pathname,
    query,
    headers.join(''),
    names,
    given ?? 'UNSIGNED-PAYLOAD',
  ].join('\n');
  const text = [
    'AWS4-HMAC-SHA256',
    at,
    `${date}/${region}/${service}/aws4_request`,
    hex(asked),
  ].join('\n');
  const sign = (key: string | Buffer, what: string): Buffer =>
    createHmac('sha256', key).update(what).digest();
  const key = ['aws4_request'].reduce<Buffer>(
    sign,
    sign(sign(sign(`AWS4${CREDENTIALS.secretAccessKey}`, date), region), service),
  );
  const right = sign(key, text).toString('hex');
  return right === signature ? (inQuery ? 'query' : 'header') : undefined;
}
