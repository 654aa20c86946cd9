// Checks a request before anything is sent: an http URL, a method, valid headers, and environment variables only if
// they hold no credential of the server.

import { Fields, invalid, decodeBase64 } from '../params.ts';

export interface Header {
  readonly name: string;
  /** One character per byte, as on the wire. */
  readonly value: string;
}

export interface HttpRequestSpec {
  readonly requestId: string;
  readonly method: string;
  readonly url: URL;
  readonly headers: readonly Header[];
  readonly body: Buffer | undefined;
  readonly timeoutMs: number | undefined;
  readonly followRedirects: boolean;
  readonly streamed: boolean;
}

type Variables = Readonly<Record<string, string | undefined>>;

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Visible characters, spaces, tabs and bytes beyond ASCII. Without line breaks, no header can be injected. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const MAX_HEADERS = 256;
const MAX_HEADER_BYTES = 64 * 1024;

/**
 * Headers that frame a message or belong to one connection are set here, not by the caller: with a wrong length the
 * rest of the body would become the next request.
 */
const CONTROLLED_HEADERS = new Set(
  'content-length transfer-encoding connection keep-alive proxy-connection upgrade te trailer expect'.split(
    ' ',
  ),
);

/** Credentials of codex, its providers and Holdfast, which nobody may send anywhere. */
const PROTECTED =
  /^(?:CODEX_|AWS_|HOLDFAST_)|^(?:OPENAI_API_KEY|OPENAI_IDENTITY_TOKEN_FILE|OPENAI_FEDERATION_RULE_ID|OPENAI_WORKLOAD_IDENTITY_CONTEXT|NODE_REPL_AUTH_TOKEN)$/i;
/** A scoped token may not use secrets in the server's environment. */
const SECRET = /KEY|SECRET|TOKEN|PASS|CREDENTIAL|AUTH/i;

export function readRequest(params: unknown, env: Variables, admin: boolean): HttpRequestSpec {
  const fields = new Fields(params, 'struct HttpRequestParams');
  const method = fields.text('method');
  const target = fields.text('url');
  const headers = fields.raw('headers') === undefined ? [] : fields.list('headers');
  const body = bodyOf(fields);
  const timeoutMs = fields.optionalCount('timeoutMs');
  const policy = fields.raw('redirectPolicy');
  const followRedirects =
    policy === undefined || fields.choice('redirectPolicy', ['follow', 'stop']) === 'follow';
  const requestId = fields.text('requestId');
  const streamed = fields.optionalFlag('streamResponse');
  if (!TOKEN.test(method) || method.toUpperCase() === 'CONNECT')
    throw invalid('http/request method is invalid: invalid HTTP method');
  const url = urlOf(target);
  return {
    requestId,
    method,
    url,
    headers: readHeaders(headers, env, admin),
    body,
    timeoutMs,
    followRedirects,
    streamed,
  };
}

function bodyOf(fields: Fields): Buffer | undefined {
  const text = fields.optionalText('bodyBase64');
  if (text === undefined) return undefined;
  const decoded = decodeBase64(text);
  if ('problem' in decoded) throw invalid(decoded.problem);
  return decoded.bytes;
}

function urlOf(target: string): URL {
  if (!/^\s*[A-Za-z][A-Za-z0-9+.-]*:/.test(target))
    throw invalid('http/request url is invalid: relative URL without a base');
  if (!URL.canParse(target)) {
    const reason = /^\s*https?:\/*$/i.test(target) ? 'empty host' : 'invalid URL';
    throw invalid(`http/request url is invalid: ${reason}`);
  }
  const url = new URL(target);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw invalid(
      `http/request only supports http and https URLs, got ${url.protocol.slice(0, -1)}`,
    );
  url.hash = '';
  return url;
}

function readHeaders(entries: readonly unknown[], env: Variables, admin: boolean): Header[] {
  if (entries.length > MAX_HEADERS)
    throw invalid(`http/request takes at most ${MAX_HEADERS} headers`);
  const headers = entries.map((entry) => readHeader(entry, env, admin));
  const size = headers.reduce((total, { name, value }) => total + name.length + value.length, 0);
  if (size > MAX_HEADER_BYTES)
    throw invalid(`http/request takes at most ${MAX_HEADER_BYTES} bytes of headers`);
  return headers.filter(({ name }) => !CONTROLLED_HEADERS.has(name));
}

function readHeader(entry: unknown, env: Variables, admin: boolean): Header {
  const fields = new Fields(entry, 'struct HttpHeader');
  const given = fields.text('name');
  if (!TOKEN.test(given))
    throw invalid('http/request header name is invalid: invalid HTTP header name');
  const name = given.toLowerCase();
  const variable = fields.optionalText('valueEnvVar');
  const text =
    fields.text('value') +
    (variable === undefined ? '' : readVariable(name, variable, { env, admin }));
  const value = Buffer.from(text, 'utf8').toString('latin1');
  if (!HEADER_VALUE.test(value))
    throw invalid(`http/request header value is invalid for ${name}: failed to parse header value`);
  return { name, value };
}

function readVariable(
  header: string,
  variable: string,
  { env, admin }: { env: Variables; admin: boolean },
): string {
  if (PROTECTED.test(variable) || (!admin && SECRET.test(variable)))
    throw invalid(
      `http/request header ${header} cannot use executor environment variable ${variable}`,
    );
  const value = Object.hasOwn(env, variable) ? env[variable] : undefined;
  if (value === undefined)
    throw invalid(
      `http/request header ${header} requires executor environment variable ${variable}`,
    );
  if (value === '')
    throw invalid(
      `http/request header ${header} requires a non-empty executor environment variable ${variable}`,
    );
  return value;
}
