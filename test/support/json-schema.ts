// A judge of values by JSON Schema, as far as our OpenAPI document uses it. Stricter than the standard in one way: a
// field that the schema does not name is a fault, so that an answer cannot say what is not described.

export type Schema = { readonly [keyword: string]: unknown };

const KNOWN = new Set([
  '$ref',
  'type',
  'const',
  'enum',
  'oneOf',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'pattern',
  'contentEncoding',
  'description',
]);

/** What is wrong with a value, each with its place; nothing when it is as described. */
export function faults(value: unknown, schema: Schema, root: Schema, at = '$'): string[] {
  const unknown = Object.keys(schema).filter((keyword) => !KNOWN.has(keyword));
  if (unknown.length > 0) throw new Error(`${at}: the judge does not know ${unknown.join(', ')}`);
  if (typeof schema['$ref'] === 'string')
    return faults(value, resolve(schema['$ref'], root), root, at);
  if (Array.isArray(schema['oneOf'])) {
    const fitting = (schema['oneOf'] as Schema[]).filter(
      (option) => faults(value, option, root, at).length === 0,
    );
    return fitting.length === 1 ? [] : [`${at}: ${fitting.length} of oneOf fit`];
  }
  if ('const' in schema && value !== schema['const'])
    return [`${at}: not ${JSON.stringify(schema['const'])}`];
  if (Array.isArray(schema['enum']) && !schema['enum'].includes(value))
    return [`${at}: ${JSON.stringify(value)} is not in the enum`];
  return typeFaults(value, schema, root, at);
}

export function resolve(reference: string, root: Schema): Schema {
  let found: unknown = root;
  for (const part of reference.replace(/^#\//, '').split('/'))
    found = (found as Record<string, unknown> | undefined)?.[part];
  if (typeof found !== 'object' || found === null) throw new Error(`${reference} leads nowhere`);
  return found as Schema;
}

function typeFaults(value: unknown, schema: Schema, root: Schema, at: string): string[] {
  switch (schema['type']) {
    case undefined:
      return [];
    case 'string':
      return typeof value === 'string' ? lengthFaults(value, schema, at) : [`${at}: no string`];
    case 'boolean':
      return typeof value === 'boolean' ? [] : [`${at}: no boolean`];
    case 'integer':
    case 'number':
      return numberFaults(value, schema, at);
    case 'array':
      if (!Array.isArray(value)) return [`${at}: no array`];
      return [
        ...sizeFaults(value.length, schema['minItems'], schema['maxItems'], at),
        ...value.flatMap((item, index) =>
          faults(item, (schema['items'] ?? {}) as Schema, root, `${at}[${index}]`),
        ),
      ];
    case 'object':
      return objectFaults(value, schema, root, at);
    default:
      throw new Error(`${at}: the judge does not know the type ${String(schema['type'])}`);
  }
}

function numberFaults(value: unknown, schema: Schema, at: string): string[] {
  if (typeof value !== 'number') return [`${at}: no number`];
  if (schema['type'] === 'integer' && !Number.isInteger(value))
    return [`${at}: ${value} is broken`];
  const { minimum = -Infinity, maximum = Infinity } = schema as {
    minimum?: number;
    maximum?: number;
  };
  return value >= minimum && value <= maximum ? [] : [`${at}: ${value} is out of bounds`];
}

function lengthFaults(value: string, schema: Schema, at: string): string[] {
  const { pattern } = schema as { pattern?: string };
  const wrong = pattern !== undefined && !new RegExp(pattern).test(value);
  return [
    ...sizeFaults(value.length, schema['minLength'], schema['maxLength'], at),
    ...(wrong ? [`${at}: not as ${pattern}`] : []),
  ];
}

function sizeFaults(size: number, least: unknown, most: unknown, at: string): string[] {
  const fits =
    size >= ((least as number | undefined) ?? 0) &&
    size <= ((most as number | undefined) ?? Infinity);
  return fits ? [] : [`${at}: a size of ${size}`];
}

function objectFaults(value: unknown, schema: Schema, root: Schema, at: string): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return [`${at}: no object`];
  const properties = (schema['properties'] ?? {}) as Record<string, Schema>;
  const required = (schema['required'] ?? []) as string[];
  const more = schema['additionalProperties'];
  const missing = required.filter((name) => !Object.hasOwn(value, name));
  return [
    ...missing.map((name) => `${at}.${name}: missing`),
    ...Object.entries(value).flatMap(([name, item]) => {
      const place = `${at}.${name}`;
      const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
      if (known) return faults(item, known, root, place);
      if (typeof more === 'object' && more !== null)
        return faults(item, more as Schema, root, place);
      return more === true ? [] : [`${place}: not described`];
    }),
  ];
}
