// Parts of parameters that files, requests and sandboxes share: words out of a choice, base64 with what is wrong with it,
// and no parameters at all. The texts are those of codex's own decoder.

import { Fields, invalid } from '../params.ts';

/** For methods without parameters: nothing, null and an empty object are equal. */
export function noParams(params: unknown): void {
  if (params === undefined || params === null) return;
  const kind = kindOf(params);
  if (kind !== 'map' || Object.keys(params).length > 0)
    throw invalid(`invalid type: ${kind}, expected unit`);
}

/** Absent or null: what is usual. */
export function flagOr(fields: Fields, name: string, usual: boolean): boolean {
  return fields.has(name) ? fields.flag(name) : usual;
}

export function list(fields: Fields, name: string): readonly unknown[] {
  const value = fields.raw(name);
  if (value === undefined) throw invalid(`missing field \`${name}\``);
  if (!Array.isArray(value)) throw invalid(`invalid type: ${kindOf(value)}, expected a sequence`);
  return value;
}

export function object(fields: Fields, name: string, shape: string): Fields {
  const value = fields.raw(name);
  if (value === undefined) throw invalid(`missing field \`${name}\``);
  return new Fields(value, `struct ${shape}`);
}

export function oneOf<Word extends string>(value: unknown, words: readonly Word[]): Word {
  if (typeof value !== 'string')
    throw invalid(`invalid type: ${kindOf(value)}, expected string or map`);
  const found = words.find((word) => word === value);
  if (found !== undefined) return found;
  const quoted = words.map((word) => `\`${word}\``);
  const choice = quoted.length === 2 ? quoted.join(' or ') : `one of ${quoted.join(', ')}`;
  throw invalid(`unknown variant \`${value.slice(0, 200)}\`, expected ${choice}`);
}

/** Standard, padded base64, or the reason why it is not. */
export function decodeBase64(
  value: string,
): { readonly bytes: Buffer } | { readonly problem: string } {
  const bytes = Buffer.from(value, 'base64');
  // Node skips what is not base64. Encoding again is the cheapest complete check: it gives the same letters only for the
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
