// Whether the running keeper is of an older build than this command: builds of one version look alike otherwise.

import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** When the files of this build came here; npm sets the time of their last change to a fixed date, but not this one. */
function installedAtMs(): number {
  return statSync(fileURLToPath(import.meta.url)).ctimeMs;
}

/** What a person should know about a keeper that has been running for so long; undefined when it is of this build. */
export function olderBuild(uptimeMs: number): string | undefined {
  if (Date.now() - uptimeMs >= installedAtMs()) return undefined;
  return 'an older build than this command; to replace it, run "holdfast shutdown" (this ends its processes)';
}
