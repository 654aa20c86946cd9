// Reads the parameters of a method, with the error texts of codex's own decoder: clients show them to people.

import { fileURLToPath } from 'node:url';
import { RpcError, rpcCodes } from './rpc.ts';

export function invalid(message: string): RpcError {
  return new RpcError(rpcCodes.invalidParams, message);
}

/** The fields of one object. */
export class Fields {
  private readonly values: Readonly<Record<string, unknown>>;

  /** `shape` is the name of the expected type in error texts. */
  constructor(value: unknown, shape: string) {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw invalid(`invalid type: ${describe(value)}, expected ${shape}`);
    this.values = value as Record<string, unknown>;
  }

  has(name: string): boolean {
    return this.raw(name) !== undefined && this.raw(name) !== null;
  }

  raw(name: string): unknown {
    return Object.hasOwn(this.values, name) ? this.values[name] : undefined;
  }

  text(name: string): string {
    const value = this.required(name);
    if (typeof value !== 'string') throw wrong(value, 'a string');
    return value;
  }

  optionalText(name: string): string | undefined {
    return this.has(name) ? this.text(name) : undefined;
  }

  flag(name: string): boolean {
    const value = this.required(name);
    if (typeof value !== 'boolean') throw wrong(value, 'a boolean');
    return value;
  }

  optionalFlag(name: string, byDefault = false): boolean {
    return this.has(name) ? this.flag(name) : byDefault;
  }

  /** An integer from 0. */
  count(name: string, most = Number.MAX_SAFE_INTEGER): number {
    const value = this.required(name);
    if (typeof value !== 'number') throw wrong(value, 'u64');
    if (value < 0 || !Number.isInteger(value)) throw invalid('invalid number');
    return Math.min(value, most);
  }

  optionalCount(name: string): number | undefined {
    return this.has(name) ? this.count(name) : undefined;
  }

  texts(name: string): string[] {
    const value = this.required(name);
    if (!Array.isArray(value)) throw wrong(value, 'a sequence');
    return value.map((item) => {
      if (typeof item !== 'string') throw wrong(item, 'a string');
      return item;
    });
  }

  list(name: string): readonly unknown[] {
    const value = this.required(name);
    if (!Array.isArray(value)) throw invalid(`invalid type: ${kindOf(value)}, expected a sequence`);
    return value;
  }

  object(name: string, shape: string): Fields {
    return new Fields(this.required(name), `struct ${shape}`);
  }

  choice<Word extends string>(name: string, words: readonly Word[]): Word {
    const value = this.raw(name);
    if (typeof value !== 'string')
      throw invalid(`invalid type: ${kindOf(value)}, expected string or map`);
    const found = words.find((word) => word === value);
    if (found !== undefined) return found;
    const quoted = words.map((word) => `\`${word}\``);
    const choice = quoted.length === 2 ? quoted.join(' or ') : `one of ${quoted.join(', ')}`;
    throw invalid(`unknown variant \`${value.slice(0, 200)}\`, expected ${choice}`);
  }

  variables(name: string): Record<string, string> {
    const value = this.required(name);
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw wrong(value, 'a map');
    for (const item of Object.values(value)) {
      if (typeof item !== 'string') throw wrong(item, 'a string');
    }
    return value as Record<string, string>;
  }

  private required(name: string): unknown {
    const value = this.raw(name);
    if (value === undefined) throw invalid(`missing field \`${name}\``);
    return value;
  }
}

/** The native path of a `file:` URI. */
export function pathOf(uri: string, what: string): string {
  let url: URL;
  try {
    url = new URL(uri);
  } catch {
    throw invalid('invalid URI: relative URL without a base');
  }
  if (url.protocol !== 'file:')
    throw invalid(`unsupported path URI scheme \`${url.protocol.slice(0, -1)}\``);
  try {
    return fileURLToPath(url);
  } catch {
    throw invalid(
      `${what} URI \`${uri}\` is not valid on this exec-server host: '${uri}' is invalid on 'linux'`,
    );
  }
}

function wrong(value: unknown, expected: string): RpcError {
  return invalid(`invalid type: ${describe(value)}, expected ${expected}`);
}

function describe(value: unknown): string {
  if (value === undefined || value === null) return 'null';
  if (typeof value === 'string') return `string ${JSON.stringify(value.slice(0, 200))}`;
  if (typeof value === 'boolean') return `boolean \`${value}\``;
  if (typeof value === 'number') return 'number';
  return Array.isArray(value) ? 'sequence' : 'map';
}

/** For methods without parameters: nothing, null and an empty object are equal. */
export function noParams(params: unknown): void {
  if (params === undefined || params === null) return;
  const kind = kindOf(params);
  if (kind !== 'map' || Object.keys(params).length > 0)
    throw invalid(`invalid type: ${kind}, expected unit`);
}

/** Standard, padded base64, or the reason why it is not. */
export function decodeBase64(
  value: string,
): { readonly bytes: Buffer } | { readonly problem: string } {
  const bytes = Buffer.from(value, 'base64');
  // Node skips invalid characters. Encoding again is the cheapest complete check: the result is the same only for the
  // right alphabet, padding and last bits.
  if (value.length % 4 === 0 && bytes.toString('base64') === value) return { bytes };
  return { problem: whyNotBase64(value) };
}

function whyNotBase64(value: string): string {
  const body = value.replace(/={1,2}$/, '');
  const at = body.search(/[^A-Za-z0-9+/]/);
  if (at >= 0) return `Invalid symbol ${body.codePointAt(at)}, offset ${at}.`;
  if (body.length % 4 === 1) return `Invalid input length: ${body.length}`;
  if (value.length % 4 !== 0) return 'Invalid padding';
  return `Invalid last symbol ${body.codePointAt(body.length - 1)}, offset ${body.length - 1}.`;
}

function kindOf(value: unknown): string {
  if (value === undefined || value === null) return 'null';
  if (Array.isArray(value)) return 'sequence';
  return typeof value === 'object' ? 'map' : typeof value;
}
