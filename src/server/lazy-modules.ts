// Modules that only some clients need. They are loaded soon after the start: loading them before would delay the start,
// loading them on the first request would delay that, and loading them later might find the files of a new version.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { parseDocument } from 'yaml';
import type { Clock } from '../base/clock.ts';
import { lazyScreens } from '../terminals/lazy-screens.ts';
import { loadDashboard } from './dashboard/files.ts';

/** Usually before the first client. */
const LOAD_DELAY_MS = 1000;

/**
 * The only way to load them. An import in another file is resolved on disk again and fails if the files are gone,
 * although the module has been loaded.
 */
export const lazyModules = {
  mcp: async () => {
    const module = await import('./mcp/token-sessions.ts');
    await module.prepareMcpLibrary();
    return module;
  },
  codex: () => import('./codex/codex.ts'),
  e2b: () => import('./e2b/e2b.ts'),
  webSockets: () => import('ws'),
  toml: () => import('smol-toml'),
  // Named, because declarations cannot name all of its types.
  yaml: (): Promise<{ readonly parseDocument: typeof parseDocument }> => import('yaml'),
  dashboard: loadDashboard,
  thumbnails: () => import('./dashboard/watch/thumbnail.ts'),
  ...lazyScreens,
} as const;

/** Only where an exporter is configured, and then before the first request. */
export const loadTelemetry = (): Promise<typeof import('./telemetry/telemetry.ts')> =>
  import('./telemetry/telemetry.ts');

type LazyModule = keyof typeof lazyModules;

/** Returns a function that cancels the loading. */
export function scheduleLoading(
  clock: Clock,
  report: (message: string) => void,
  names = Object.keys(lazyModules) as readonly LazyModule[],
): () => void {
  return clock.after(LOAD_DELAY_MS, () => {
    loadAll(names).catch((error: unknown) => report(`a module cannot be loaded: ${String(error)}`));
  });
}

async function loadAll(names: readonly LazyModule[]): Promise<void> {
  for (const name of names) {
    await lazyModules[name]();
    await nextTurn();
  }
}
