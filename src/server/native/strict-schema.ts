// Makes a schema strict at every depth. The host's own schemas ignore unknown fields, so that a newer program can call
// an older keeper; over HTTP a mistyped field is an error.

import * as v from 'valibot';

/** The parts of a valibot schema that are used here. */
interface Node {
  readonly type: string;
  readonly pipe?: readonly [v.GenericSchema, ...v.GenericPipeAction[]];
  readonly entries?: v.ObjectEntries;
  readonly wrapped?: v.GenericSchema;
  readonly default?: unknown;
  readonly getter?: (input: unknown) => v.GenericSchema;
  readonly item?: v.GenericSchema;
  readonly key?: string;
  readonly options?: readonly v.GenericSchema[];
}

/** The same schema, in which every object refuses unknown fields. */
export function makeStrict<Schema extends v.GenericSchema>(schema: Schema): Schema {
  return convert(schema) as Schema;
}

function convert(schema: v.GenericSchema): v.GenericSchema {
  const {
    type,
    pipe,
    entries,
    wrapped,
    default: byDefault,
    getter,
    item,
    key,
    options,
  } = schema as unknown as Node;
  if (pipe) {
    const [first, ...actions] = pipe;
    return v.pipe(convert(first), ...actions);
  }
  if (entries && (type === 'object' || type === 'strict_object')) {
    const strict = Object.entries(entries).map(([name, entry]) => [
      name,
      convert(entry as v.GenericSchema),
    ]);
    return v.strictObject(Object.fromEntries(strict) as v.ObjectEntries);
  }
  if (type === 'optional' && wrapped) return v.optional(convert(wrapped), byDefault as never);
  if (type === 'lazy' && getter) return v.lazy((input) => convert(getter(input)));
  if (type === 'array' && item) return v.array(convert(item));
  if (type === 'variant' && key !== undefined && options)
    return v.variant(key, options.map(convert) as never);
  return schema;
}
