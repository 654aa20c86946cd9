// Tells whether a running keeper or server is of an older build than this command; both may have the same version.

import { statSync } from 'node:fs';
import { builtFile } from '../../base/workers/built-file.ts';

/** When the files of this build came here; npm sets the time of their last change to a fixed date, but not this one. */
function installedAtMs(): number {
  return statSync(builtFile(import.meta.url, '../main.js')).ctimeMs;
}

/** Started before the files of this command came here. */
export function isOlderBuild(startedAtMs: number): boolean {
  return startedAtMs < installedAtMs();
}

/** A message when a keeper with this uptime is of an older build; undefined when it is of this one. */
export function olderBuild(uptimeMs: number): string | undefined {
  if (!isOlderBuild(Date.now() - uptimeMs)) return undefined;
  return 'an older build than this command; to replace it, run "holdfast shutdown" (this ends its processes)';
}
