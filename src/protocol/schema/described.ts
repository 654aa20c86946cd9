// Schemas with descriptions, from which the API documents are made.

import * as v from 'valibot';

export function described<Schema extends v.GenericSchema>(words: string, schema: Schema) {
  return v.pipe(schema, v.description(words));
}

/** A field that may be left out. */
export function optional<Schema extends v.GenericSchema>(words: string, schema: Schema) {
  return v.optional(described(words, schema));
}
