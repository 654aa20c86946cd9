// Reads the messages of E2B's clients: protobuf in its JSON form, bare or in one envelope of the Connect protocol. Unknown
// fields are ignored; names may be in camelCase or in snake_case.

import { refuseTooManyValues } from '../http/request-body.ts';
import { E2bError } from './errors.ts';

export type Fields = Readonly<Record<string, unknown>>;

const MAX_ENVELOPE_BYTES = 1024 * 1024;
const COMPRESSED = 0x01;

/** The one envelope of a streaming request. */
export function readEnvelope(body: Buffer): Fields {
  if (body.length < 5) throw invalid('the request is not one envelope');
  if (((body[0] ?? 0) & COMPRESSED) !== 0) throw invalid('compression is not supported');
  const length = body.readUInt32BE(1);
  if (length > MAX_ENVELOPE_BYTES)
    throw invalid(`the message is larger than ${MAX_ENVELOPE_BYTES} bytes`);
  if (body.length !== length + 5 || body[0] !== 0) throw invalid('the request is not one envelope');
  return readMessage(body.subarray(5));
}

export function readMessage(json: Buffer): Fields {
  refuseTooManyValues(json);
  let parsed: unknown;
  try {
    parsed = JSON.parse(json.toString('utf8'));
  } catch {
    throw invalid('the message is not JSON');
  }
  return asFields(parsed, 'the message');
}

function asFields(value: unknown, name: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalid(`${name} is not an object`);
  return value as Fields;
}

/** By its name in camelCase, or as the schema spells it. */
export function get(fields: Fields, name: string): unknown {
  if (Object.hasOwn(fields, name)) return fields[name] ?? undefined;
  const snake = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.hasOwn(fields, snake) ? (fields[snake] ?? undefined) : undefined;
}

export function getFields(fields: Fields, name: string): Fields | undefined {
  const value = get(fields, name);
  return value === undefined ? undefined : asFields(value, name);
}

export function getText(fields: Fields, name: string): string | undefined {
  const value = get(fields, name);
  if (value === undefined || typeof value === 'string') return value;
  throw invalid(`${name} is not a string`);
}

export function getFlag(fields: Fields, name: string): boolean | undefined {
  const value = get(fields, name);
  if (value === undefined || typeof value === 'boolean') return value;
  throw invalid(`${name} is not a boolean`);
}

/** Numbers may come as strings. */
export function getNumber(fields: Fields, name: string): number | undefined {
  const value = get(fields, name);
  if (value === undefined) return undefined;
  const number = typeof value === 'string' && value !== '' ? Number(value) : value;
  if (typeof number === 'number' && Number.isInteger(number) && number >= 0 && number < 2 ** 32)
    return number;
  throw invalid(`${name} is not an unsigned number`);
}

export function getTexts(fields: Fields, name: string): string[] {
  const value = get(fields, name) ?? [];
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value;
  throw invalid(`${name} is not a list of strings`);
}

export function getTextMap(fields: Fields, name: string): Record<string, string> {
  const entries = Object.entries(getFields(fields, name) ?? {});
  for (const [key, value] of entries)
    if (typeof value !== 'string') throw invalid(`${name}.${key} is not a string`);
  return Object.fromEntries(entries) as Record<string, string>;
}

/** Base64, also URL-safe and without padding. */
export function getBytes(fields: Fields, name: string): Buffer | undefined {
  const text = getText(fields, name);
  if (text === undefined) return undefined;
  if (!/^[\w+/-]*={0,2}$/.test(text)) throw invalid(`${name} is not base64`);
  return Buffer.from(text, 'base64');
}

export function invalid(message: string): E2bError {
  return new E2bError('invalid_argument', message);
}
