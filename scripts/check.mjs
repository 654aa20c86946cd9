// Everything that can be checked without running it, one step after the other. The first that fails ends it.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const steps = [
  ['format', 'oxfmt/bin/oxfmt', '--check', 'src', 'test', 'bench', 'scripts', 'examples'],
  ['lint', 'oxlint/bin/oxlint', '--type-aware', 'src', 'test', 'bench'],
  ['types', 'typescript/bin/tsc', '--noEmit'],
  ['types of the dashboard', 'typescript/bin/tsc', '--noEmit', '-p', 'src/dashboard'],
  ['unused code', 'knip/bin/knip.js'],
];

for (const [name, file, ...args] of steps) {
  process.stdout.write(`\n== ${name}\n`);
  const done = spawnSync(process.execPath, [join(root, 'node_modules', file), ...args], {
    cwd: root,
    stdio: 'inherit',
  });
  if (done.status !== 0) {
    process.stderr.write(`holdfast: "${name}" failed.\n`);
    process.exit(1);
  }
}
