// The description of the native operations, OpenAPI 3.1, made from their rows: the schemas that check are the schemas
// that are shown.

import type * as v from 'valibot';
import { VERSION } from '../base/version.ts';
import { nativeOperations, type NativeOperation } from './native-operations.ts';
import { named } from './native-shapes.ts';
import { fieldWords } from './openapi-words.ts';
import {
  isOptional,
  jsonSchema,
  namedSchema,
  type JsonSchema,
  type Names,
} from '../protocol/json-schema.ts';

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
}

interface Content {
  readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>>;
}

export interface OperationDoc {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly parameters: readonly Parameter[];
  readonly requestBody?: Content & { readonly required: boolean };
  readonly responses: Readonly<Record<string, Content & { readonly description: string }>>;
}

export interface OpenApi {
  readonly openapi: '3.1.0';
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly security: readonly Record<string, readonly string[]>[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationDoc>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly securitySchemes: Readonly<Record<string, JsonSchema>>;
  };
}

const ABOUT =
  'Starts processes and terminals, keeps every byte of their output, and tells how they ended. Every request needs a token: "Authorization: Bearer TOKEN". The admin token is in the file "token" of the state directory; through the socket "server.sock" in that directory no token is needed.';
const OWNER_HEADER: Parameter = {
  name: 'Holdfast-Owner',
  in: 'header',
  required: false,
  description: fieldWords['owner'] ?? '',
  schema: { type: 'string' },
};
const LAST_EVENT_ID: Parameter = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  description: 'The id of the last event the client got; goes before the query parameter.',
  schema: { type: 'string', pattern: '^[0-9]{1,15}$' },
};

export function openApi(): OpenApi {
  const names: Names = new Map<unknown, string>(
    Object.entries(named).map(([name, schema]) => [schema, name]),
  );
  const paths: Record<string, Record<string, OperationDoc>> = {};
  for (const [name, operation] of Object.entries<NativeOperation>(nativeOperations)) {
    const path = operation.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = {
      ...paths[path],
      [operation.method.toLowerCase()]: describe(name, operation, names),
    };
  }
  const schemas = Object.entries<v.GenericSchema>(named).map(([name, schema]) => [
    name,
    namedSchema(schema, names),
  ]);
  return {
    openapi: '3.1.0',
    info: { title: 'Holdfast', version: VERSION, description: ABOUT },
    servers: [{ url: '/' }],
    security: [{ token: [] }],
    paths,
    components: {
      schemas: Object.fromEntries(schemas) as Record<string, JsonSchema>,
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    },
  };
}

function describe(name: string, operation: NativeOperation, names: Names): OperationDoc {
  const { summary, about, answer, media = 'application/json', body } = operation;
  const schema: JsonSchema = answer
    ? jsonSchema(answer, names)
    : { type: media === 'application/json' ? 'object' : 'string' };
  return {
    operationId: name,
    summary,
    ...(about !== undefined && { description: about }),
    parameters: parametersOf(operation, names),
    ...(body && {
      requestBody: {
        required: Object.values(body.entries).some((entry) => !isOptional(entry)),
        content: { 'application/json': { schema: withWords(jsonSchema(body, names)) } },
      },
    }),
    responses: {
      200: { description: 'Done.', content: { [media]: { schema } } },
      default: {
        description: 'Refused; the code is a row of the error table.',
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    },
  };
}

function parametersOf({ path, query, media }: NativeOperation, names: Names): Parameter[] {
  const inPath = Array.from(path.matchAll(/:(\w+)/g), ([, name = '']): Parameter => {
    return { name, in: 'path', required: true, schema: { type: 'string' } };
  });
  const inQuery = Object.entries(query.entries).map(([name, entry]): Parameter => {
    const words = fieldWords[name];
    return {
      name,
      in: 'query',
      required: !isOptional(entry),
      ...(words !== undefined && { description: words }),
      schema: jsonSchema(entry, names),
    };
  });
  const inHeaders = media === 'text/event-stream' ? [OWNER_HEADER, LAST_EVENT_ID] : [OWNER_HEADER];
  return [...inPath, ...inQuery, ...inHeaders];
}

/** The schemas that check carry no prose; it is added to the fields of a body by their names. */
function withWords(schema: JsonSchema): JsonSchema {
  const properties = Object.entries((schema['properties'] ?? {}) as Record<string, JsonSchema>);
  const described = properties.map(([name, field]) => {
    const words = fieldWords[name];
    return [name, words === undefined ? field : { ...field, description: words }];
  });
  return { ...schema, properties: Object.fromEntries(described) as unknown };
}
