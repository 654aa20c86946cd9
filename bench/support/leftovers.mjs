// However a benchmark ends (a thrown error, Ctrl+C, a SIGTERM), the keepers that it opened end with all their processes.

import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';

const MAIN = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const SIGNALS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };
const homes = new Set();

/** Answers what to call once the keeper of this home has ended. */
export function endAtExit(home) {
  watch();
  homes.add(home);
  return () => homes.delete(home);
}

let watches = false;

function watch() {
  if (watches) return;
  watches = true;
  for (const [signal, code] of Object.entries(SIGNALS))
    process.on(signal, () => process.exit(code));
  process.on('exit', () => {
    for (const home of homes) {
      spawnSync(process.execPath, [MAIN, 'shutdown', '--home', home, '--grace', '0s']);
      rmSync(home, { recursive: true, force: true });
    }
  });
}
