// Brings a fresh clone to a state in which it can run: dependencies installed without their scripts, sources built.
// Does nothing, quickly, when both are already current. Installing uses only what Node itself brings. With --tests also the programs of
// the system that some tests are about: installed on a CI machine as root, named anywhere else.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  fail(
    `Holdfast needs Node 20.19 or newer; this is ${process.versions.node}. Install a newer Node and try again.`,
  );
}

await current(
  'dependencies',
  join(root, 'node_modules', '.holdfast-installed'),
  dependencyPrint(),
  install,
);
await current('build', join(root, 'dist', '.holdfast-built'), sourcePrint(), build);
// A step of its own: a changed page does not build everything anew.
await current('documentation', join(root, 'dist', '.holdfast-docs'), docsPrint(), buildSite);

if (process.argv.includes('--tests')) systemPrograms();

function systemPrograms() {
  // A server of packages that does not answer costs a minute, not the whole run.
  const patience = [
    'Acquire::Retries=1',
    'Acquire::http::Timeout=30',
    'Acquire::https::Timeout=30',
  ];
  const programs = {
    bwrap: 'bubblewrap',
    busybox: 'busybox',
    chromium: 'chromium',
    fish: 'fish',
    ksh: 'ksh',
    // For `npm run test:cgroup` alone.
    ...(process.argv.includes('--cgroup') && { 'linux.uml': 'user-mode-linux' }),
    mksh: 'mksh',
    'nats-server': 'nats-server',
    strace: 'strace',
    sudo: 'sudo',
    'systemd-analyze': 'systemd',
    tcsh: 'tcsh',
    tmux: 'tmux',
    zsh: 'zsh',
  };
  const missing = Object.keys(programs).filter((name) => !onPath(name));
  if (missing.length === 0) return;
  const possible = process.env.CI && process.getuid?.() === 0 && onPath('apt-get');
  if (possible) {
    process.stderr.write(`holdfast: ${missing.join(', ')} ...\n`);
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const options = ['-q', ...patience.flatMap((each) => ['-o', each])];
    const apt = (...words) =>
      spawnSync('apt-get', [...options, ...words], { stdio: ['ignore', 'ignore', 2], env });
    const install = (names) =>
      apt('install', '-y', '--no-install-recommends', ...names.map((name) => programs[name]));
    apt('update');
    // One package that there is not, or that cannot be fetched, keeps no other.
    if (install(missing).status !== 0) for (const name of missing) install([name]);
  }
  const still = missing.filter((name) => !onPath(name));
  if (still.length > 0)
    process.stderr.write(
      `holdfast: without ${still.join(', ')} the tests about them are left out; on Debian: apt-get install ${still.map((name) => programs[name]).join(' ')}\n`,
    );
}

function onPath(name) {
  return `${process.env.PATH ?? ''}:/usr/sbin`
    .split(':')
    .some((folder) => existsSync(join(folder, name)));
}

async function current(what, stampFile, print, bring) {
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === print) return;
  process.stderr.write(`holdfast: ${what} ...\n`);
  await bring();
  mkdirSync(dirname(stampFile), { recursive: true });
  writeFileSync(stampFile, print);
}

function install() {
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  run(
    npm(),
    ['ci', ...quiet, '--fetch-timeout=60000'],
    'The packages could not be fetched. If the registry did not answer ("npm config get registry" names it, "npm ping" asks it), try again.',
  );
}

/** Built beside and then put in place: a keeper that is running may still load modules from the old one. */
async function build() {
  const [dist, next, old] = ['dist', 'dist.next', 'dist.old'].map((name) => join(root, name));
  for (const folder of [next, old]) rmSync(folder, { recursive: true, force: true });
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const { buildDashboard } = await import('./build-dashboard.mjs');
  // At the same time: most machines have two processors.
  await Promise.all([
    runBeside([process.execPath, tsc, '-p', 'tsconfig.build.json', '--outDir', next]),
    buildDashboard(join(next, 'dashboard')),
  ]);
  await bundleWorkers(next);
  const { bundlePrograms } = await import('./bundle-programs.mjs');
  await bundlePrograms(next);
  if (existsSync(dist)) renameSync(dist, old);
  renameSync(next, dist);
  rmSync(old, { recursive: true, force: true });
}

async function buildSite() {
  const { buildDocs } = await import('./build-docs.mjs');
  await buildDocs(join(root, 'dist'));
}

/**
 * A worker is one file with all of ours that it imports: keeper and server read it at their start, and a new version may
 * take the place of the files before the worker is needed.
 */
async function bundleWorkers(folder) {
  const { build: bundle } = await import('rolldown');
  for (const file of files(folder).filter((name) => name.endsWith('-worker.js')))
    await bundle({
      input: file,
      platform: 'node',
      external: /^(node:|@?\w)/,
      transform: { define: { 'import.meta.url': 'globalThis.holdfastModule' } },
      output: { file, format: 'es', codeSplitting: false },
      logLevel: 'warn',
    });
}

/** npm as it was started from, so that a machine with several uses the one the person chose. */
function npm() {
  const cli = process.env.npm_execpath;
  return cli !== undefined && cli.endsWith('.js') ? [process.execPath, cli] : ['npm'];
}

function runBeside([file, ...args]) {
  return new Promise((resolve) => {
    const child = spawn(file, args, { cwd: root, stdio: ['ignore', 2, 2] });
    child.once('error', (error) => fail(`${file} could not be started: ${error.message}`));
    child.once('close', (code, signal) => {
      if (code !== 0) fail(`${[file, ...args].join(' ')} ended with ${code ?? signal}`);
      resolve();
    });
  });
}

function run([file, ...first], rest, remedy = '') {
  const done = spawnSync(file, [...first, ...rest], { cwd: root, stdio: ['ignore', 2, 2] });
  if (done.error) fail(`${file} could not be started: ${done.error.message}`);
  const words = [file, ...first, ...rest].join(' ');
  if (done.status !== 0) fail(`${words} ended with ${done.status ?? done.signal}. ${remedy}`);
}

function dependencyPrint() {
  return createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
}

function sourcePrint() {
  const hash = createHash('sha256');
  for (const file of [
    'tsconfig.build.json',
    'scripts/build-dashboard.mjs',
    'scripts/bundle-programs.mjs',
  ])
    hash.update(readFileSync(join(root, file)));
  for (const file of files(join(root, 'src'))) hash.update(lookOf(file));
  return hash.digest('hex');
}

function docsPrint() {
  const hash = createHash('sha256').update(sourcePrint());
  const folders = ['docs', 'examples', 'scripts/docs'].map((name) => join(root, name));
  const top = readdirSync(root).filter((name) => name.endsWith('.md'));
  const single = ['scripts/build-docs.mjs', 'package.json', ...top].map((name) => join(root, name));
  for (const file of [...folders.filter(existsSync).flatMap(files), ...single])
    hash.update(lookOf(file));
  return hash.digest('hex');
}

function lookOf(file) {
  const { mtimeMs, size } = statSync(file);
  return `${file} ${mtimeMs} ${size}\n`;
}

function files(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort();
}

function fail(message) {
  process.stderr.write(`holdfast: ${message}\n`);
  process.exit(1);
}
