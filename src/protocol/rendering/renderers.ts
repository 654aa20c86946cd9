// Renderers for answers that the keeper writes to a caller's own connection. The server names the renderer, so the keeper
// knows no dialect.

import { encodeGoJson } from './go-json.ts';
import { coderOutput } from './coder-output.ts';
import { E2bStream, type E2bStreamParams } from './e2b-stream.ts';
import type { Results } from '../host-api.ts';

const renderers = {
  json: (result: unknown): string => `${JSON.stringify(result)}\n`,
  /** The output of a process in coder's API. */
  coder: (result: unknown): string => encodeGoJson(coderOutput(result as Results['text'])),
} as const;

export type RendererName = keyof typeof renderers;

/** Undefined for a renderer that only a newer server knows. */
export function rendererNamed(name: string): ((result: unknown) => string) | undefined {
  return Object.hasOwn(renderers, name) ? renderers[name as RendererName] : undefined;
}

/** A stream of one process: it says which page to read next, and makes bytes of it. */
const streams = {
  /** Of E2B's process service. */
  e2b: E2bStream,
} as const;

export type StreamName = keyof typeof streams;
export type StreamParams = E2bStreamParams;

/** Undefined for a stream that only a newer server knows. */
export function streamNamed(name: string): typeof E2bStream | undefined {
  return Object.hasOwn(streams, name) ? streams[name as StreamName] : undefined;
}
