// Reading the parameters of a method, with the texts that codex's own decoder would answer: clients show them to people.

import { fileURLToPath } from 'node:url';
import { RpcError, rpcCodes } from './rpc.ts';

export function invalid(message: string): RpcError {
  return new RpcError(rpcCodes.invalidParams, message);
}

/** The fields of one object of parameters. */
export class Fields {
  private readonly values: Readonly<Record<string, unknown>>;

  /** `shape` is what the decoder calls it when something else was sent. */
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

  optionalFlag(name: string): boolean {
    return this.has(name) ? this.flag(name) : false;
  }

  /** A whole number from 0. */
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
