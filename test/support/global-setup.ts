// Runs once before all tests. Whatever the tests create, they create under a permissive umask, so that a file mode which
// depends on the umask shows itself. Shells find an empty home: the start-up files of whoever runs the tests can take
// seconds, or wait for a lock that somebody else holds. SEED=random becomes a number that is printed, so that the run can
// be repeated.

import { mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

export function setup(): () => void {
  process.umask(0o000);
  if (process.env['SEED'] === 'random') {
    process.env['SEED'] = String(Date.now() % 1_000_000);
    process.stdout.write(`SEED=${process.env['SEED']} repeats the random choices of this run.\n`);
  }
  const home = mkdtempSync(join(tmpdir(), 'holdfast-home-'));
  process.env['npm_config_userconfig'] ??= join(homedir(), '.npmrc');
  process.env['npm_config_cache'] ??= join(homedir(), '.npm');
  process.env['HOME'] = home;
  return () => rmSync(home, { recursive: true, force: true });
}
