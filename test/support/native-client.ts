// A caller of the native dialect for tests. Every JSON answer it gets is held against the OpenAPI document.

import { Agent, request, type IncomingMessage, type RequestOptions } from 'node:http';
import { openApi } from '../../src/server/native/openapi.ts';
import type { ProcessInfo } from '../../src/protocol/process.ts';
import type { NativeEvent } from '../../src/server/native/events.ts';
import type { Served } from './coder-client.ts';
import { faults, type Schema } from './json-schema.ts';

export interface NativeReply {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly trailers: NodeJS.Dict<string>;
  readonly bytes: Buffer;
  /** The answer, already found to be as described. */
  readonly json: never;
}

export interface Frame {
  readonly id?: string;
  readonly event?: string;
  readonly data?: never;
  readonly comment?: true;
}

interface Sending {
  readonly body?: unknown;
  readonly raw?: string | Buffer;
  readonly headers?: Record<string, string | string[]>;
}

const document = openApi() as unknown as Schema;
/** Operations that have been answered with 200 in this file. */
export const answered = new Set<string>();

export class NativeClient {
  private readonly target: RequestOptions;
  private readonly headers: Record<string, string | string[]>;

  constructor(target: RequestOptions, headers: Record<string, string | string[]> = {}) {
    this.target = target;
    this.headers = headers;
  }

  static of(served: Served, agent?: Agent): NativeClient {
    return new NativeClient(
      { host: '127.0.0.1', port: served.port, ...(agent && { agent }) },
      { authorization: `Bearer ${served.token}` },
    );
  }

  with(headers: Record<string, string | string[]>): NativeClient {
    return new NativeClient(this.target, { ...this.headers, ...headers });
  }

  get(path: string): Promise<NativeReply> {
    return this.call('GET', path);
  }

  post(path: string, body?: unknown): Promise<NativeReply> {
    return this.call('POST', path, { body });
  }

  delete(path: string): Promise<NativeReply> {
    return this.call('DELETE', path);
  }

  async call(method: string, path: string, sending: Sending = {}): Promise<NativeReply> {
    const response = await this.open(method, path, sending);
    const chunks: Buffer[] = [];
    for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
    const { statusCode: status = 0, headers, trailers } = response;
    const bytes = Buffer.concat(chunks);
    const isJson = (headers['content-type'] ?? '').startsWith('application/json');
    const json = (isJson ? JSON.parse(bytes.toString()) : undefined) as never;
    judge(method, path, status, json);
    return { status, headers, trailers, bytes, json };
  }

  open(
    method: string,
    path: string,
    { body, raw, headers }: Sending = {},
  ): Promise<IncomingMessage> {
    const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body));
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          ...this.target,
          method,
          path,
          headers: {
            ...this.headers,
            ...(payload !== undefined && { 'content-type': 'application/json' }),
            ...headers,
          },
        },
        resolve,
      );
      sent.once('error', reject);
      sent.end(payload);
    });
  }

  async start(spec: unknown): Promise<ProcessInfo> {
    const { status, json } = await this.post('/v1/processes', spec);
    if (status !== 200) throw new Error(`not started: ${JSON.stringify(json)}`);
    return (json as { process: ProcessInfo }).process;
  }

  /** Starts it and waits until nothing can be added. */
  async run(spec: unknown): Promise<string> {
    const { id } = await this.start(spec);
    await this.post(`/v1/processes/${id}/wait`, { for: [{ kind: 'closed' }] });
    return id;
  }

  /** The whole frames of a stream, cut after so many bytes, or when those there are enough. */
  async frames(
    path: string,
    { headers, budget = Infinity, until }: FrameOptions = {},
  ): Promise<Frame[]> {
    const response = await this.open('GET', path, { ...(headers && { headers }) });
    const type = response.headers['content-type'];
    if (type !== 'text/event-stream; charset=utf-8') throw new Error(`no stream but ${type}`);
    let text = '';
    let taken = 0;
    const frames: Frame[] = [];
    for await (const chunk of response as AsyncIterable<Buffer>) {
      const room = budget - taken;
      taken += chunk.length;
      // One character per byte until a frame is whole, so that a cut inside a character stays a cut.
      text += chunk.subarray(0, Math.max(0, room)).toString('latin1');
      const parts = text.split('\n\n');
      text = parts.pop() ?? '';
      frames.push(...parts.map(parseFrame));
      if (taken >= budget || until?.(frames) === true) break;
    }
    response.destroy();
    return frames;
  }
}

interface FrameOptions {
  readonly headers?: Record<string, string>;
  readonly budget?: number;
  readonly until?: (frames: readonly Frame[]) => boolean;
}

function parseFrame(latin1: string): Frame {
  const text = Buffer.from(latin1, 'latin1').toString('utf8');
  const fields = new Map<string, string>();
  for (const line of text.split('\n')) {
    const at = line.indexOf(':');
    fields.set(line.slice(0, at), line.slice(at + 1).trim());
  }
  if (fields.has('')) return { comment: true };
  const [id, event, data] = ['id', 'event', 'data'].map((name) => fields.get(name));
  return {
    ...(id !== undefined && { id }),
    ...(event !== undefined && { event }),
    ...(data !== undefined && { data: JSON.parse(data) as never }),
  };
}

export function eventData(frames: readonly Frame[]): NativeEvent[] {
  return frames
    .filter(({ id, event }) => id !== undefined && event !== 'missed')
    .map(({ data }) => data as unknown as NativeEvent);
}

export function outputOf(events: readonly NativeEvent[]): Buffer {
  return Buffer.concat(
    events.map((event) => {
      if (event.kind !== 'output') return Buffer.alloc(0);
      return event.base64 === undefined
        ? Buffer.from(event.text ?? '')
        : Buffer.from(event.base64, 'base64');
    }),
  );
}

/** The answer is as the document says, or the test fails with the place where it is not. */
function judge(method: string, path: string, status: number, json: unknown): void {
  const operation = operationAt(method, path.split('?', 1)[0] ?? '');
  if (!operation || json === undefined) return;
  const responses = operation['responses'] as Record<string, { content: Record<string, Schema> }>;
  const schema = (responses[status] ?? responses['default'])?.content['application/json']?.[
    'schema'
  ] as Schema | undefined;
  if (!schema) throw new Error(`${method} ${path} answered JSON that is not described`);
  // The document describes itself only as an object.
  if (operation['operationId'] === 'openapi') return;
  const wrong = faults(json, schema, document);
  if (wrong.length > 0)
    throw new Error(`${method} ${path} ${status} is not as described: ${wrong.join('; ')}`);
  if (status === 200) answered.add(String(operation['operationId']));
}

function operationAt(method: string, path: string): Schema | undefined {
  const paths = document['paths'] as Record<string, Record<string, Schema>>;
  for (const [template, methods] of Object.entries(paths)) {
    const pattern = new RegExp(`^${template.replace(/\{\w+\}/g, '[^/]+')}$`);
    const operation = methods[method.toLowerCase()];
    if (operation && pattern.test(path)) return operation;
  }
  return undefined;
}
