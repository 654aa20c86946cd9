// The filesystem methods of codex: fs/*.

import type { CodexSurroundings, MethodTable } from './rpc.ts';

export function fsMethods(_surroundings: CodexSurroundings): MethodTable {
  return {};
}
