// The key that signs the ids of tasks: in the home, so that any later server, and `holdfast mcp`, can read them.

import { join } from 'node:path';
import { secretIn } from '../http/tokens.ts';

export function taskKeyIn(home: string): string {
  return secretIn(join(home, 'mcp.key'));
}
