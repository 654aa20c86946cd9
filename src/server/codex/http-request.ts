// http/request: HTTP calls that a codex client makes from where its commands run.

import type { CodexSurroundings, MethodTable } from './rpc.ts';

export function httpMethods(_surroundings: CodexSurroundings): MethodTable {
  return {};
}
