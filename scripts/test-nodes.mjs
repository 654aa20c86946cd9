// Runs tests on other Nodes than the one at hand, each from the registry's own build of it: `npm run test:nodes` takes all
// tests on 20, 22, 24 and 26, `npm run test:nodes -- --only 24 src/host test/cli` one of them on some. Of several it prints a table.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const MAJORS = ['20', '22', '24', '26'];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string', multiple: true } },
});

const results = [];
for (const major of values.only ?? MAJORS) {
  const bin = join(nodeOf(major), 'bin');
  const version = versionOf(join(bin, 'node'));
  process.stderr.write(`\nholdfast: tests on Node ${version}\n`);
  const begun = Date.now();
  const report = join(tmpdir(), `holdfast-tests-${process.pid}-${major}.json`);
  const reporters = ['default', './test/support/tally.ts', 'json'];
  const options = [...reporters.map((name) => `--reporter=${name}`), `--outputFile.json=${report}`];
  const done = spawnSync(
    join(bin, 'node'),
    [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...options, ...positionals],
    {
      cwd: root,
      stdio: 'inherit',
      env: { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` },
    },
  );
  const seconds = Math.round((Date.now() - begun) / 1000);
  results.push({ version, passed: done.status === 0, seconds, counts: countsOf(report) });
}
// Of one the runner's last line says it.
if (results.length > 1) {
  const rows = results.map(({ version, counts, seconds, passed }) =>
    [version, ...counts, `${seconds} s`, passed ? 'passed' : 'FAILED'].join(' | '),
  );
  const head = [
    'Node | passed | failed | left out | time | run',
    '--- | --- | --- | --- | --- | ---',
  ];
  process.stderr.write(`\n${[...head, ...rows].map((row) => `| ${row} |`).join('\n')}\n`);
}
process.exitCode = results.every(({ passed }) => passed) ? 0 : 1;

/** Passed, failed and left out; unknown when the runner did not come to its end. */
function countsOf(report) {
  if (!existsSync(report)) return ['?', '?', '?'];
  const told = JSON.parse(readFileSync(report, 'utf8'));
  rmSync(report);
  return [told.numPassedTests, told.numFailedTests, told.numPendingTests + told.numTodoTests];
}

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
