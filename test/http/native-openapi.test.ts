// The description of the native dialect: it is OpenAPI 3.1 in shape, and it says what the rows check.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as v from 'valibot';
import { errors } from '../../src/protocol/errors.ts';
import { nativeOperations, type NativeOperation } from '../../src/server/native/operations.ts';
import { openApi } from '../../src/server/native/openapi.ts';
import { jsonSchema } from '../../src/protocol/json-schema.ts';
import { serve, type Served } from '../support/coder-client.ts';
import { faults, resolve, type Schema } from '../support/json-schema.ts';
import { NativeClient } from '../support/native-client.ts';

let served: Served;
let client: NativeClient;

beforeAll(async () => {
  served = await serve();
  client = NativeClient.of(served);
});

afterAll(() => served.stop());

const content = v.record(v.string(), v.strictObject({ schema: v.looseObject({}) }));
const parameter = v.strictObject({
  name: v.string(),
  in: v.picklist(['path', 'query', 'header']),
  required: v.boolean(),
  description: v.optional(v.string()),
  schema: v.looseObject({}),
});
const operation = v.strictObject({
  operationId: v.string(),
  summary: v.string(),
  description: v.optional(v.string()),
  security: v.optional(v.tuple([])),
  parameters: v.array(parameter),
  requestBody: v.optional(v.strictObject({ required: v.boolean(), content })),
  responses: v.record(v.string(), v.strictObject({ description: v.string(), content })),
});
const document = v.strictObject({
  openapi: v.literal('3.1.0'),
  info: v.strictObject({ title: v.string(), version: v.string(), description: v.string() }),
  servers: v.array(v.strictObject({ url: v.string() })),
  security: v.array(v.record(v.string(), v.array(v.string()))),
  paths: v.record(
    v.pipe(v.string(), v.startsWith('/')),
    v.record(v.picklist(['get', 'post', 'delete']), operation),
  ),
  components: v.strictObject({
    schemas: v.record(v.pipe(v.string(), v.regex(/^[\w.-]+$/)), v.looseObject({})),
    securitySchemes: v.strictObject({
      token: v.strictObject({ type: v.literal('http'), scheme: v.literal('bearer') }),
    }),
  }),
});

type Methods = Record<string, v.InferOutput<typeof operation>>;

function references(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) =>
    key === '$ref' && typeof item === 'string' ? [item] : references(item),
  );
}

describe('the description of the native dialect', () => {
  it('[API27] it is an OpenAPI 3.1 document in which every reference leads somewhere', async () => {
    const { status, headers, json } = await client.get('/openapi.json');
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('application/json');
    expect(json).toEqual(JSON.parse(JSON.stringify(openApi())));
    const parsed = v.parse(document, json);
    for (const reference of references(json)) expect(resolve(reference, json)).toBeTypeOf('object');
    const ids = Object.values(parsed.paths).flatMap((methods) =>
      Object.values(methods as Methods).map(({ operationId }) => operationId),
    );
    expect(ids.toSorted()).toEqual(Object.keys(nativeOperations).toSorted());
    for (const [path, methods] of Object.entries(parsed.paths)) {
      const inPath = Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => name);
      for (const { parameters } of Object.values(methods as Methods)) {
        const named = parameters.filter((each) => each.in === 'path').map(({ name }) => name);
        expect(named).toEqual(inPath);
        const keys = parameters.map((each) => `${each.in} ${each.name}`);
        expect(new Set(keys).size).toBe(keys.length);
      }
    }
    expect(resolve('#/components/schemas/Error', json)).toMatchObject({
      properties: { error: { properties: { code: { enum: Object.keys(errors) } } } },
    });
  });

  it('[API27] every parameter and every field of a body is explained', () => {
    const silent = Object.values(openApi().paths)
      .flatMap((methods) => Object.values(methods))
      .flatMap(({ operationId, parameters, requestBody }) => {
        const schema = requestBody?.content['application/json']?.schema ?? {};
        const fields = Object.entries((schema['properties'] ?? {}) as Record<string, Schema>);
        return [
          ...parameters.filter((each) => each.in !== 'path' && !each.description),
          ...fields.filter(([, field]) => !field['description']).map(([name]) => ({ name })),
        ].map(({ name }) => `${operationId} ${name}`);
      });
    expect(silent).toEqual([]);
  });

  it('[API28] what the description allows is what the rows take, and what it forbids they refuse', () => {
    const bodies: Partial<Record<keyof typeof nativeOperations, unknown[]>> = {
      start: [
        { command: 'x', size: { cols: 1, rows: 1 }, env: { A: 'b' }, streams: 'pty' },
        { argv: ['a'], environment: { inherit: 'core', only: ['A'] }, keepMs: 0 },
        { command: '' },
        { argv: [] },
        { streams: 'other' },
        { size: { cols: 0, rows: 1 } },
        { hardTimeoutMs: 1.5 },
        { id: 'not allowed!' },
        { labels: { a: 1 } },
        { unknown: 1 },
      ],
      wait: [
        { waits: [{ id: 'a', for: [{ kind: 'exit' }] }], mode: 'all' },
        { waits: [{ id: 'a', for: [{ kind: 'silence', forMs: 1 }] }] },
        { waits: [{ id: 'a', for: [{ kind: 'silence' }] }] },
        { waits: [{ id: 'a', for: [{ kind: 'other' }] }] },
        { timeoutMs: 5 },
      ],
      stdin: [{ text: '' }, { base64: 'YQ==', eof: true }, { eof: 'yes' }, { writeId: '' }],
      acknowledge: [{ numbers: [1, 2] }, { numbers: [-1] }, { numbers: ['1'] }, {}],
      signal: [{ signal: 'INT' }, { signal: 'terminate', graceMs: 0 }, { graceMs: 1 }],
      resize: [{ size: { cols: 80, rows: 24 } }, { size: {} }],
    };
    for (const [name, values] of Object.entries(bodies)) {
      const row: NativeOperation = nativeOperations[name as keyof typeof nativeOperations];
      if (!row.body) throw new Error(`${name} has no body`);
      const schema = jsonSchema(row.body);
      for (const value of values) {
        const described = faults(value, schema, schema).length === 0;
        expect(v.is(row.body, value), `${name} ${JSON.stringify(value)}`).toBe(described);
      }
    }
  });

  it('[API28] a schema that cannot be described is our own mistake', () => {
    expect(() => jsonSchema(v.date())).toThrow('cannot be converted');
    expect(() => jsonSchema(v.pipe(v.string(), v.toUpperCase()))).toThrow('cannot be converted');
  });

  it('[API29] a browser can open description and page; figures need a token, except through the socket of the home', async () => {
    const nobody = new NativeClient({ host: '127.0.0.1', port: served.port });
    for (const path of ['/openapi.json', '/docs/'])
      expect((await nobody.get(path)).status).toBe(200);
    for (const path of ['/metrics', '/v1/health'])
      expect((await nobody.get(path)).status).toBe(401);
    const { socket = '' } = served.server;
    const near = new NativeClient({ socketPath: socket });
    for (const path of ['/openapi.json', '/docs/', '/metrics', '/v1/health'])
      expect((await near.get(path)).status).toBe(200);
    const page = client.with({ origin: 'http://evil.example' });
    expect((await page.get('/docs/')).status).toBe(403);
  });
});
