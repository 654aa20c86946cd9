// OpenAPI 3.1 of the native operations. It is made from the same schemas that check the requests.

import { VERSION } from '../../base/version.ts';
import { nativeOperations, type NativeOperation } from './operations.ts';
import { named } from './shapes.ts';
import { OWNER_DESCRIPTION } from './query.ts';
import {
  isOptional,
  jsonSchema,
  namedSchemas,
  type JsonSchema,
} from '../../protocol/json-schema.ts';

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
}

interface Content {
  readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>>;
}

interface OperationDoc {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly security?: readonly never[];
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
  'Starts processes and terminals, stores all their output, and reports how they ended. Every request needs a token: "Authorization: Bearer TOKEN". "holdfast token admin" prints a token; through the socket "server.sock" in the state directory none is needed.';
const OWNER_HEADER: Parameter = {
  name: 'Holdfast-Owner',
  in: 'header',
  required: false,
  description: OWNER_DESCRIPTION,
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
  const paths: Record<string, Record<string, OperationDoc>> = {};
  for (const [name, operation] of Object.entries<NativeOperation>(nativeOperations)) {
    const path = operation.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = {
      ...paths[path],
      [operation.method.toLowerCase()]: describe(name, operation),
    };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Holdfast', version: VERSION, description: ABOUT },
    servers: [{ url: '/' }],
    security: [{ token: [] }],
    paths,
    components: {
      schemas: namedSchemas(named),
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    },
  };
}

function describe(name: string, operation: NativeOperation): OperationDoc {
  const { summary, about, answer, media = 'application/json', body } = operation;
  const schema: JsonSchema = answer
    ? jsonSchema(answer, named)
    : { type: media === 'application/json' ? 'object' : 'string' };
  return {
    operationId: name,
    summary,
    ...(about !== undefined && { description: about }),
    ...(operation.anonymous === true && { security: [] }),
    parameters: parametersOf(operation),
    ...(body && {
      requestBody: {
        required: Object.values(body.entries).some((entry) => !isOptional(entry)),
        content: { 'application/json': { schema: jsonSchema(body, named) } },
      },
    }),
    responses: {
      200: { description: 'Done.', content: { [media]: { schema } } },
      ...refusals(operation),
    },
  };
}

const PROBLEM: Content = {
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
};

/** The code in the answer is a row of the error table; the status follows from it. */
function refusals({ anonymous, path, body }: NativeOperation): OperationDoc['responses'] {
  return {
    400: { description: 'The request is not understood.', ...PROBLEM },
    ...(anonymous !== true && {
      401: { description: 'The token is missing, unknown, revoked or expired.', ...PROBLEM },
    }),
    403: { description: 'This caller, host name or origin is not allowed.', ...PROBLEM },
    ...(path.includes(':id') && {
      404: { description: 'There is no such process of this owner.', ...PROBLEM },
    }),
    ...(body && {
      409: { description: 'It does not fit what is there now.', ...PROBLEM },
      413: { description: 'The body is too large.', ...PROBLEM },
    }),
    default: { description: 'Refused; the code is a row of the error table.', ...PROBLEM },
  };
}

function parametersOf({ path, query, media }: NativeOperation): Parameter[] {
  const inPath = Array.from(path.matchAll(/:(\w+)/g), ([, name = '']): Parameter => {
    return { name, in: 'path', required: true, schema: { type: 'string' } };
  });
  const inQuery = Object.entries(query.entries).map(([name, entry]): Parameter => {
    const { description, ...schema } = jsonSchema(entry, named);
    return {
      name,
      in: 'query',
      required: !isOptional(entry),
      ...(typeof description === 'string' && { description }),
      schema,
    };
  });
  const inHeaders = media === 'text/event-stream' ? [OWNER_HEADER, LAST_EVENT_ID] : [OWNER_HEADER];
  return [...inPath, ...inQuery, ...inHeaders];
}
