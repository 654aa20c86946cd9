// Checks the query and the body of a native request against the schemas of its operation.

import { isUtf8 } from 'node:buffer';
import * as v from 'valibot';
import { HoldfastError } from '../../protocol/errors.ts';
import { inputProblem } from '../../protocol/input-problem.ts';

/** No operation takes deeper values, and serializing much deeper ones would overflow the stack. */
const MAX_DEPTH = 64;

type Fields = v.StrictObjectSchema<v.ObjectEntries, undefined>;

/** Converts text to a number or a boolean where the schema wants one; the schema then checks it. */
export function parseQuery<Schema extends Fields>(
  schema: Schema,
  query: URLSearchParams,
): v.InferOutput<Schema> {
  const input: Record<string, unknown> = {};
  for (const [name, value] of query) {
    if (Object.hasOwn(input, name)) throw invalid('is given twice', name);
    const field = Object.hasOwn(schema.entries, name) ? schema.entries[name] : undefined;
    input[name] = field ? fromText(baseType(field), value) : value;
  }
  return check(schema, input);
}

/** No body counts as an empty object. */
export function parseBody<Schema extends Fields>(
  schema: Schema,
  body: Buffer,
): v.InferOutput<Schema> {
  return check(schema, body.length === 0 ? {} : parseJson(body));
}

function parseJson(body: Buffer): unknown {
  if (!isUtf8(body)) throw invalid('The body is not UTF-8.');
  if (depthOf(body) > MAX_DEPTH)
    throw invalid(`The body is nested deeper than ${MAX_DEPTH} levels.`);
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    // V8's message would quote a part of the body.
    throw invalid('The body is not valid JSON.');
  }
}

const [QUOTE, BACKSLASH, OPEN_LIST, CLOSE_LIST, OPEN, CLOSE] = Buffer.from('"\\[]{}');

function depthOf(json: Buffer): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at];
    if (inString) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) inString = false;
    } else if (byte === QUOTE) inString = true;
    else if (byte === OPEN || byte === OPEN_LIST) deepest = Math.max(deepest, (depth += 1));
    else if (byte === CLOSE || byte === CLOSE_LIST) depth -= 1;
  }
  return deepest;
}

function check<Schema extends Fields>(schema: Schema, input: unknown): v.InferOutput<Schema> {
  const parsed = v.safeParse(schema, input, { abortEarly: true });
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  const field = v.getDotPath(issue) ?? undefined;
  throw invalid(inputProblem(issue), field);
}

export function invalid(problem: string, field?: string): HoldfastError {
  return field === undefined
    ? new HoldfastError('invalid_input', problem)
    : new HoldfastError('invalid_input', `"${field}": ${problem}`, { field });
}

function fromText(type: string, value: string): unknown {
  if (type === 'number' && /^-?\d{1,16}$/.test(value)) return Number(value);
  if (type === 'boolean' && (value === 'true' || value === 'false')) return value === 'true';
  return value;
}

function baseType(schema: v.GenericSchema | v.ObjectEntries[string]): string {
  return 'wrapped' in schema ? baseType(schema.wrapped) : schema.type;
}
