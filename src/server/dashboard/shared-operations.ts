// The operations that a shared link may use: they read the process in their path and change nothing.

import type { NativeName } from '../native/operations.ts';

export const sharedOperations: ReadonlySet<string> = new Set<NativeName>([
  'get',
  'text',
  'events',
  'bytes',
  'follow',
  'search',
  'timeline',
  'pointAt',
  'getTerminal',
  'listRuns',
  'snapshotTerminal',
  'screenshotTerminal',
  'recordTerminal',
]);
