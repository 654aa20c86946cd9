// Requests to the server that this page came from, with the page's token in a header.

import { signedOut, token } from './token.ts';

interface Asked {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

/** What the server refused, in its own words. */
export class Problem extends Error {
  readonly code: string;
  readonly remedy: string;

  constructor(code: string, message: string, remedy = '') {
    super(message);
    this.code = code;
    this.remedy = remedy;
  }
}

type Method = 'GET' | 'POST' | 'DELETE';

export async function ask<T>(method: Method, path: string, asked: Asked = {}): Promise<T> {
  const response = await send(method, path, asked);
  return (await response.json()) as T;
}

export interface Bytes {
  readonly offset: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly totalBytes: number;
}

/** A range of a process's output. It begins later than asked where the journal no longer has the bytes. */
export async function askBytes(path: string, asked: Asked): Promise<Bytes> {
  const response = await send('GET', path, asked);
  const number = (name: string): number => Number(response.headers.get(`Holdfast-${name}`));
  const bytes = new Uint8Array(await response.arrayBuffer());
  return { offset: number('Offset'), bytes, totalBytes: number('Total-Bytes') };
}

/** A picture, a recording. */
export async function askFile(path: string, asked: Asked): Promise<Blob> {
  return (await send('GET', path, asked)).blob();
}

/** Hands over each line of JSON when it comes. */
export async function askLines(
  path: string,
  asked: Asked,
  onLine: (line: unknown) => void,
): Promise<void> {
  const response = await send('GET', path, asked);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = (await reader?.read()) ?? { value: undefined, done: true };
    const lines = (rest + (value ?? '')).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(JSON.parse(line));
    if (done) return;
  }
}

async function send(method: Method, path: string, asked: Asked): Promise<Response> {
  const held = token();
  const { body, signal } = asked;
  let response: Response;
  try {
    response = await fetch(path + queryText(asked.query), {
      method,
      headers: {
        ...(held !== undefined && { Authorization: `Bearer ${held}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
      cache: 'no-store',
      credentials: 'omit',
    });
  } catch (error) {
    if (signal?.aborted === true) throw error;
    throw new Problem(
      'unreachable',
      'The server cannot be reached.',
      'Its processes keep running.',
    );
  }
  if (response.ok) return response;
  const problem = await problemOf(response);
  if (problem.code === 'unauthorized' && held !== undefined) signedOut();
  throw problem;
}

async function problemOf(response: Response): Promise<Problem> {
  try {
    const { error } = (await response.json()) as {
      error: { code: string; message: string; remedy?: string };
    };
    return new Problem(error.code, error.message, error.remedy);
  } catch {
    return new Problem('internal', `The server answered ${response.status}.`);
  }
}

function queryText(query: Asked['query'] = {}): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) given.set(name, String(value));
  return given.size === 0 ? '' : `?${given.toString()}`;
}
