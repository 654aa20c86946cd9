// JSON Schema (2020-12, as OpenAPI 3.1 and MCP use it) made of the schemas that check. Only what our rows are made of is known;
// anything else is our own mistake and says so.

import type * as v from 'valibot';

export type JsonSchema = { readonly [keyword: string]: unknown };

/** What a schema of valibot shows of itself, as far as it is used here. */
interface Node {
  readonly type: string;
  readonly pipe?: readonly Node[];
  readonly entries?: Readonly<Record<string, Node>>;
  readonly wrapped?: Node;
  readonly item?: Node;
  readonly value?: Node;
  readonly options?: readonly unknown[];
  readonly literal?: unknown;
  readonly requirement?: unknown;
  readonly description?: string;
}

/** Schemas that are referred to by name instead of being repeated. */
export type Names = ReadonlyMap<unknown, string>;

export function jsonSchema(schema: v.GenericSchema, names: Names = new Map()): JsonSchema {
  return convert(schema, names);
}

/** The same for a schema that has a name: what the name stands for. */
export function namedSchema(schema: v.GenericSchema, names: Names): JsonSchema {
  return convertBody(schema, names);
}

export function isOptional(schema: unknown): boolean {
  const { type } = schema as Node;
  return type === 'optional' || type === 'exact_optional';
}

function convert(node: Node, names: Names): JsonSchema {
  const name = names.get(node);
  return name === undefined ? convertBody(node, names) : { $ref: `#/components/schemas/${name}` };
}

function convertBody(node: Node, names: Names): JsonSchema {
  if (!node.pipe) return convertType(node, names);
  const [first, ...actions] = node.pipe;
  if (!first) throw new Error('a pipe without a schema');
  const base = convertBody(first, names);
  return Object.assign({}, base, ...actions.map((action) => constraint(action, base)));
}

function convertType(node: Node, names: Names): JsonSchema {
  const inner = (each: Node | undefined): JsonSchema => {
    if (!each) throw new Error(`a schema of type ${node.type} lacks its part`);
    return convert(each, names);
  };
  switch (node.type) {
    case 'string':
    case 'number':
    case 'boolean':
      return { type: node.type };
    case 'literal':
      return { const: node.literal };
    case 'picklist':
      return { enum: node.options };
    case 'array':
      return { type: 'array', items: inner(node.item) };
    case 'record':
      return { type: 'object', additionalProperties: inner(node.value) };
    case 'optional':
    case 'exact_optional':
      return inner(node.wrapped);
    case 'variant':
      return { oneOf: (node.options as Node[]).map(inner) };
    case 'object':
    case 'loose_object':
    case 'strict_object':
      return object(node, inner);
    default:
      throw new Error(`no JSON Schema is known for "${node.type}"`);
  }
}

function object(node: Node, inner: (each: Node) => JsonSchema): JsonSchema {
  const entries = Object.entries(node.entries ?? {});
  const required = entries.filter(([, entry]) => !isOptional(entry)).map(([name]) => name);
  return {
    type: 'object',
    properties: Object.fromEntries(entries.map(([name, entry]) => [name, inner(entry)])),
    ...(required.length > 0 && { required }),
    ...(node.type === 'strict_object' && { additionalProperties: false }),
    ...(node.type === 'loose_object' && { additionalProperties: true }),
  };
}

function constraint({ type, requirement, description }: Node, base: JsonSchema): JsonSchema {
  const list = base['type'] === 'array';
  switch (type) {
    case 'integer':
      return { type: 'integer' };
    case 'min_value':
      return { minimum: requirement };
    case 'max_value':
      return { maximum: requirement };
    case 'min_length':
      return list ? { minItems: requirement } : { minLength: requirement };
    case 'max_length':
      return list ? { maxItems: requirement } : { maxLength: requirement };
    case 'regex':
      return { pattern: (requirement as RegExp).source };
    case 'base64':
      return { contentEncoding: 'base64' };
    case 'description':
      return { description };
    // Said in words where it matters: JSON Schema has no way to say it.
    case 'check':
      return {};
    default:
      throw new Error(`no JSON Schema is known for the action "${type}"`);
  }
}
