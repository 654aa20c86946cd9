// Renderers for answers that the keeper writes to a caller's own connection. The server names the renderer, so the keeper
// knows no dialect.

import { encodeGoJson } from './go-json.ts';
import { coderOutput } from './coder-output.ts';
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
