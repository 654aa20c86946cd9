// Paths in codex's messages are `file:` URIs. Inside, a path is a string with one character per byte (latin1), because
// a name on Linux need not be UTF-8. It is absolute, without "." and "..", and without a trailing slash.

import { refused } from './error.ts';
import { invalid } from '../params.ts';
import { RpcError, rpcCodes } from '../rpc.ts';

/** One character per byte. */
export type BytePath = string;

/** The characters that codex's own URIs escape: clients compare URIs as text. */
// oxlint-disable-next-line no-control-regex
const ESCAPED = /[\0-\x20"#%<>?`{}\\\x7f-\xff]/g;

export function parseUri(value: string): BytePath {
  const url = parse(value);
  if (url.protocol !== 'file:')
    throw invalid(`unsupported path URI scheme \`${url.protocol.slice(0, -1)}\``);
  if (url.search !== '') throw invalid('query parameters are not allowed in path URIs');
  if (url.hash !== '') throw invalid('fragments are not allowed in path URIs');
  if (isForeign(url)) throw refused(`'${url.href}' is invalid on '${process.platform}'`);
  const path = decode(url.pathname);
  if (path.includes('\0')) throw invalid(`'${url.href}' is invalid on '${process.platform}'`);
  return normalize(path);
}

/** The error as a value for a path of another machine, of which nothing can be known here. */
export function parseOwnUri(uri: string): BytePath | RpcError {
  try {
    return parseUri(uri);
  } catch (error) {
    if (error instanceof RpcError && error.code === rpcCodes.refused) return error;
    throw error;
  }
}

export function formatUri(path: BytePath): string {
  return `file://${path.replaceAll(ESCAPED, (char) => `%${hex(char)}`)}`;
}

/** A path of another machine, or of Windows (a drive letter). */
function isForeign({ host, pathname }: URL): boolean {
  return host !== '' || /^\/[A-Za-z]:(\/|$)/.test(pathname);
}

/** For messages and for calls that take text. */
export function nativeText(path: BytePath): string {
  return Buffer.from(path, 'latin1').toString('utf8');
}

export function bytePath(path: string): BytePath {
  return Buffer.from(path, 'utf8').toString('latin1');
}

/** For system calls. */
export function pathBytes(path: BytePath): Buffer {
  return Buffer.from(path, 'latin1');
}

/** True for the folder itself and for everything in it; "/a/bc" is not in "/a/b". */
export function isWithin(folder: BytePath, path: BytePath): boolean {
  if (folder === '/' || folder === path) return true;
  return path.startsWith(folder) && path[folder.length] === '/';
}

export function parentOf(path: BytePath): BytePath {
  const at = path.lastIndexOf('/');
  return at <= 0 ? '/' : path.slice(0, at);
}

/** Empty for the root. */
export function nameOf(path: BytePath): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

export function join(folder: BytePath, name: string): BytePath {
  return folder === '/' ? `/${name}` : `${folder}/${name}`;
}

function parse(value: string): URL {
  if (!/^\s*[A-Za-z][A-Za-z0-9+.-]*:/.test(value))
    throw invalid('invalid URI: relative URL without a base');
  try {
    return new URL(value);
  } catch {
    throw invalid('invalid URI: invalid international domain name');
  }
}

/** Percent-encoded bytes become bytes; an invalid escape stays as it is. */
function decode(pathname: string): BytePath {
  return pathname.replaceAll(/%([0-9A-Fa-f]{2})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}

/** The URL parser has resolved dots, except those next to an escaped slash. */
function normalize(path: BytePath): BytePath {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    if (part === '..') parts.pop();
    else parts.push(part);
  }
  return `/${parts.join('/')}`;
}

function hex(char: string): string {
  return char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0');
}
