// Runs tests on other Nodes than the one at hand, each from the registry's own build of it: `npm run test:nodes` takes all
// tests on 22, 24 and 26, `npm run test:nodes -- --only 24 src/host test/cli` one of them on some.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const MAJORS = ['22', '24', '26'];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string', multiple: true } },
});

const results = [];
for (const major of values.only ?? MAJORS) {
  const bin = join(nodeOf(major), 'bin');
  const version = versionOf(join(bin, 'node'));
  process.stderr.write(`\nholdfast: tests on Node ${version}\n`);
  const done = spawnSync(
    join(bin, 'node'),
    [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...positionals],
    {
      cwd: root,
      stdio: 'inherit',
      env: { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` },
    },
  );
  results.push({ version, passed: done.status === 0 });
}
// Of one the runner's last line says it.
if (results.length > 1)
  for (const { version, passed } of results)
    process.stderr.write(`holdfast: Node ${version}: ${passed ? 'passed' : 'FAILED'}\n`);
process.exitCode = results.every(({ passed }) => passed) ? 0 : 1;

/** Its folder; fetched once. */
function nodeOf(major) {
  const folder = join(root, 'node_modules', '.cache', 'nodes', major);
  if (existsSync(join(folder, 'bin', 'node'))) return folder;
  const parent = dirname(folder);
  mkdirSync(parent, { recursive: true });
  const name = `node-${process.platform}-${process.arch}@${major}`;
  run(
    'npm',
    ['pack', '--loglevel=error', '--fetch-timeout=60000', '--pack-destination', parent, name],
    `Node ${major} could not be fetched. If the registry did not answer ("npm config get registry" names it), try again.`,
  );
  const packed = readdirSync(parent).find((each) => each.includes(`-${major}.`));
  if (packed === undefined) fail(`${name} was not packed`);
  run('tar', ['-xzf', join(parent, packed), '-C', parent]);
  renameSync(join(parent, 'package'), folder);
  return folder;
}

function versionOf(node) {
  return run(node, ['--version']).trim().slice(1);
}

function run(file, args, remedy = '') {
  const done = spawnSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = `${file} ${args.join(' ')} ended with ${done.status ?? done.error}`;
  if (done.status !== 0) fail(`${ended}. ${remedy}`);
  return done.stdout;
}

function fail(message) {
  process.stderr.write(`holdfast: ${message}\n`);
  process.exit(1);
}
