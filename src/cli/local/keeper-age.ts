// Tells whether the running keeper is of an older build than this command; both may have the same version.

import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** When the files of this build came here; npm sets the time of their last change to a fixed date, but not this one. */
function installedAtMs(): number {
  return statSync(fileURLToPath(import.meta.url)).ctimeMs;
}

/** A message when a keeper with this uptime is of an older build; undefined when it is of this one. */
export function olderBuild(uptimeMs: number): string | undefined {
  if (Date.now() - uptimeMs >= installedAtMs()) return undefined;
  return 'an older build than this command; to replace it, run "holdfast shutdown" (this ends its processes)';
}
