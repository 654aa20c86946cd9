// Sends one request and follows its redirects until there is a final response. Private headers are not sent to another
// origin.

import { request as plainRequest, type Agent, type IncomingMessage } from 'node:http';
import { request as secureRequest } from 'node:https';
import type { HttpRequestSpec, Header } from './params.ts';
import { RpcError, rpcCodes } from '../rpc.ts';

/** The limit of codex's server. */
const MAX_REDIRECTS = 10;
const PRIVATE_HEADERS = new Set(['authorization', 'cookie', 'proxy-authorization', 'host']);
const BODY_HEADERS = new Set(['content-type', 'content-encoding', 'content-language']);

/** Connections of one client, kept alive for its next request only. */
export interface Agents {
  readonly http: Agent;
  readonly https: Agent;
}

interface Hop {
  readonly method: string;
  readonly url: URL;
  readonly headers: readonly Header[];
  readonly body: Buffer | undefined;
}

export function failure(reason: string): RpcError {
  return new RpcError(rpcCodes.failed, `http/request failed: ${reason}`);
}

export async function fetchResponse(
  request: HttpRequestSpec,
  agents: Agents,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  let hop: Hop = request;
  for (let redirects = 0; ; redirects += 1) {
    const response = await send(hop, agents, signal);
    const target = request.followRedirects ? redirectOf(response, hop.url) : undefined;
    if (target === undefined) return response;
    // Not read: the whole body would have to be read before the connection could be reused.
    response.destroy();
    if (redirects === MAX_REDIRECTS) throw failure('too many redirects');
    if (target.protocol !== 'http:' && target.protocol !== 'https:')
      throw failure(`redirect target uses unsupported URL scheme: ${target.protocol.slice(0, -1)}`);
    hop = nextHop(hop, response.statusCode ?? 0, target);
  }
}

function redirectOf({ statusCode, headers }: IncomingMessage, from: URL): URL | undefined {
  if (![301, 302, 303, 307, 308].includes(statusCode ?? 0)) return undefined;
  if (headers.location === undefined || !URL.canParse(headers.location, from.href))
    return undefined;
  const target = new URL(headers.location, from);
  target.hash = '';
  return target;
}

function nextHop(hop: Hop, status: number, url: URL): Hop {
  const method = hop.method.toUpperCase();
  const becomesGet = (status === 303 && method !== 'HEAD') || (status < 303 && method === 'POST');
  const leaves = url.origin !== hop.url.origin;
  const headers = hop.headers.filter(
    ({ name }) => !(leaves && PRIVATE_HEADERS.has(name)) && !(becomesGet && BODY_HEADERS.has(name)),
  );
  return becomesGet
    ? { method: 'GET', url, headers, body: undefined }
    : { method: hop.method, url, headers, body: hop.body };
}

function send(hop: Hop, agents: Agents, signal: AbortSignal): Promise<IncomingMessage> {
  const { url, body } = hop;
  const secure = url.protocol === 'https:';
  const start = secure ? secureRequest : plainRequest;
  return new Promise((resolve, reject) => {
    const failed = (): void =>
      reject(failure(`error sending request for url (${withoutCredentials(url)})`));
    try {
      const sent = start({
        agent: secure ? agents.https : agents.http,
        protocol: url.protocol,
        hostname: url.hostname.replace(/^\[|\]$/g, ''),
        port: url.port,
        path: url.pathname + url.search,
        method: hop.method,
        headers: headerList(hop),
        signal,
      });
      sent.once('response', resolve);
      sent.once('error', failed);
      // Not requested, and what follows is not HTTP.
      sent.once('upgrade', (_response, socket) => {
        socket.destroy();
        failed();
      });
      sent.end(body);
    } catch {
      failed();
    }
  });
}

/** Names and values alternate; repeated headers are kept. */
function headerList({ method, url, headers, body }: Hop): string[] {
  const has = (wanted: string): boolean => headers.some(({ name }) => name === wanted);
  const list = headers.flatMap(({ name, value }) => [name, value]);
  if (!has('authorization') && (url.username !== '' || url.password !== ''))
    list.push('authorization', `Basic ${basic(url)}`);
  if (!has('accept')) list.push('accept', '*/*');
  if (!has('host')) list.push('host', url.host);
  const usuallyHasBody = ['POST', 'PUT', 'PATCH'].includes(method.toUpperCase());
  if (body !== undefined || usuallyHasBody) list.push('content-length', String(body?.length ?? 0));
  return list;
}

function basic({ username, password }: URL): string {
  const plain = (text: string): string => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  return Buffer.from(`${plain(username)}:${plain(password)}`).toString('base64');
}

/** For messages. */
function withoutCredentials(url: URL): string {
  const shown = new URL(url);
  shown.username = '';
  shown.password = '';
  return shown.href;
}
