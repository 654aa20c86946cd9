// A judge of values by JSON Schema: ajv. Stricter than the standard in one way: a field that the schema does not name is a
// fault, so that an answer cannot say what is not described.

import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

export type Schema = { readonly [keyword: string]: unknown };

const ajv = new Ajv2020({ strict: true, strictTypes: false, allErrors: true });
ajv.addVocabulary(['components']);
const compiled = new WeakMap<Schema, ValidateFunction>();

/** What is wrong with a value, each with its place; nothing when it is as described. */
export function faults(value: unknown, schema: Schema, root: Schema): string[] {
  let judge = compiled.get(schema);
  if (judge === undefined) {
    const { components = {} } = root;
    judge = ajv.compile(closed({ ...schema, components }) as Schema);
    compiled.set(schema, judge);
  }
  judge(value);
  return (judge.errors ?? []).map(
    ({ instancePath, message, params }) =>
      `$${instancePath}: ${message ?? ''} ${JSON.stringify(params)}`,
  );
}

export function resolve(reference: string, root: Schema): Schema {
  let found: unknown = root;
  for (const part of reference.replace(/^#\//, '').split('/'))
    found = (found as Record<string, unknown> | undefined)?.[part];
  if (typeof found !== 'object' || found === null) throw new Error(`${reference} leads nowhere`);
  return found as Schema;
}

/** Every object in it refuses what it does not name, unless it says what else there may be. */
function closed(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map(closed);
  const inner = Object.fromEntries(
    Object.entries(schema).map(([key, item]) => [key, closed(item)]),
  );
  const isObject = inner['type'] === 'object' && typeof inner['properties'] === 'object';
  return isObject ? { additionalProperties: false, ...inner } : inner;
}
