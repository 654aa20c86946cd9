// What the server needs only for some callers is loaded soon after its start: not before, because starting would take
// longer; not in the middle of a first request, which it would hold up; and not when a new version may have taken the
// place of the files.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../base/clock.ts';
import { lazyScreens } from '../terminals/lazy-screens.ts';
import { loadMcpLibrary } from '../tools/mcp/server.ts';

/** Most often before the first client. */
const LOAD_MS = 1000;

/**
 * The only way to them. An import that stands in another file is looked for on the disk anew, and not found when the files
 * have gone, although the module has been loaded.
 */
export const lazyModules = {
  mcp: loadMcpLibrary,
  webSockets: () => import('ws'),
  toml: () => import('smol-toml'),
  ...lazyScreens,
} as const;

/** Answers how to give it up. */
export function loadLater(clock: Clock, report: (message: string) => void): () => void {
  return clock.after(LOAD_MS, () => {
    loadAll().catch((error: unknown) => report(`a part cannot be loaded: ${String(error)}`));
  });
}

async function loadAll(): Promise<void> {
  for (const load of Object.values(lazyModules)) {
    await load();
    await nextTurn();
  }
}
