// Converts valibot schemas to JSON Schema (2020-12, as OpenAPI 3.1 and MCP use it).

import { toJsonSchema, toJsonSchemaDefs, type ConversionConfig } from '@valibot/to-json-schema';
import type * as v from 'valibot';

export type JsonSchema = { readonly [keyword: string]: unknown };

/** Schemas that are referenced by name. */
export type NamedSchemas = Readonly<Record<string, v.GenericSchema>>;

export function jsonSchema(schema: v.GenericSchema, named: NamedSchemas = {}): JsonSchema {
  const { $schema: _dialect, $defs: _named, ...body } = toJsonSchema(schema, configFor(named));
  return body;
}

/** The definitions of the named schemas. */
export function namedSchemas(named: NamedSchemas): Record<string, JsonSchema> {
  return toJsonSchemaDefs(named, configFor(named)) as Record<string, JsonSchema>;
}

export function isOptional(schema: unknown): boolean {
  const { type } = schema as v.GenericSchema;
  return type === 'optional' || type === 'exact_optional';
}

function configFor(named: NamedSchemas): ConversionConfig {
  return {
    target: 'draft-2020-12',
    definitions: named,
    // JSON Schema cannot express checks; descriptions mention those that matter.
    ignoreActions: ['check'],
    overrideRef: ({ referenceId }) => `#/components/schemas/${referenceId}`,
    overrideSchema: ({ valibotSchema, jsonSchema: made, errors }) => {
      if (errors) return undefined;
      // `lazy` is used for a word or a list; the input decides which.
      if (valibotSchema.type === 'lazy') {
        const { getter } = valibotSchema as unknown as v.LazySchema<v.GenericSchema>;
        const option = (input: unknown) => jsonSchema(getter(input), named);
        return { anyOf: [option(''), option([])] };
      }
      if (valibotSchema.type === 'loose_object') made.additionalProperties = true;
      const { required, ...rest } = made;
      return required?.length === 0 ? rest : made;
    },
  };
}
