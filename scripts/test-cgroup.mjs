// Runs the tests of containment where cgroup v2 has every controller: in a user-mode Linux, which boots in two seconds on the files of
// this machine and needs no rights. `npm run test:cgroup` takes all of them, `npm run test:cgroup -- test/containment/usage.test.ts` one.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** Everything takes about five minutes on two busy processors. */
const LONGEST_MS = 30 * 60_000;
const MEMORY_BYTES = 2 * 1024 ** 3;

const kernel = (process.env.PATH ?? '')
  .split(delimiter)
  .map((folder) => join(folder, 'linux.uml'))
  .find((file) => existsSync(file));
if (kernel === undefined)
  fail('linux.uml is not installed; on Debian: apt-get install user-mode-linux');

const tests = process.argv.length > 2 ? process.argv.slice(2) : ['test/containment'];
const folder = mkdtempSync(join(tmpdir(), 'holdfast-uml-'));
const status = join(folder, 'status');
const given = {
  HF_ROOT: root,
  HF_NODE: process.execPath,
  HF_PATH: `${dirname(process.execPath)}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
  HF_TESTS: tests.join(','),
  HF_STATUS: status,
  SLOW: '1',
};
const spaced = Object.values(given).find((value) => /\s/.test(value));
if (spaced !== undefined) fail(`a path with a space cannot be passed to the kernel: ${spaced}`);

try {
  process.exitCode = await boot();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** The exit code of the tests. */
async function boot() {
  const words = [
    `mem=${MEMORY_BYTES}`,
    'rootfstype=hostfs',
    'rootflags=/',
    'rw',
    'quiet',
    `init=${join(root, 'scripts', 'cgroup-init.sh')}`,
    'con=null',
    'con0=null,fd:1',
    ...Object.entries(given).map(([name, value]) => `${name}=${value}`),
  ];
  // A group of its own: the machine consists of many processes of this one.
  const machine = spawn(kernel, words, {
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
    // Its memory is a file: in memory, where there is room.
    env: { ...process.env, ...(freeBytes('/dev/shm') < MEMORY_BYTES && { TMPDIR: folder }) },
  });
  const end = () => spawnSync('kill', ['-KILL', '--', `-${machine.pid}`]);
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, end);
  const timer = setTimeout(end, LONGEST_MS);
  await new Promise((resolve, reject) => machine.once('error', reject).once('close', resolve));
  clearTimeout(timer);
  if (existsSync(status)) return Number(readFileSync(status, 'utf8'));
  process.stderr.write('holdfast: the machine ended before its tests did\n');
  return 1;
}

function freeBytes(place) {
  if (!existsSync(place)) return 0;
  const { bavail, bsize } = statfsSync(place);
  return bavail * bsize;
}

function fail(message) {
  process.stderr.write(`holdfast: ${message}\n`);
  process.exit(1);
}
