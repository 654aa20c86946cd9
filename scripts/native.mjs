// Builds native/spawn-ARCHITECTURE.so and native/begin-ARCHITECTURE, byte for byte the same with the same compiler. With --check it
// compares instead of writing. Needs Debian's gcc and gcc-aarch64-linux-gnu; users need neither.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, copyFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = join(dirname(dirname(fileURLToPath(import.meta.url))), 'native');
const compilers = { x64: 'x86_64-linux-gnu-gcc', arm64: 'aarch64-linux-gnu-gcc' };
const common = [
  ...[
    '-O2',
    '-nostdlib',
    '-ffreestanding',
    '-fno-stack-protector',
    '-fno-asynchronous-unwind-tables',
  ],
  ...['-fvisibility=hidden', '-Wall', '-Wextra', '-Werror', '-s'],
  ...['-Wl,--build-id=none', '-Wl,-z,noseparate-code', '-Wl,-z,noexecstack'],
];
const shared = [...common, '-shared', '-fPIC', '-Wl,--hash-style=gnu'];
const builds = Object.entries(compilers).flatMap(([architecture, compiler]) => [
  { compiler, options: shared, source: 'spawn.c', name: `spawn-${architecture}.so` },
  { compiler, options: [...common, '-static'], source: 'begin.c', name: `begin-${architecture}` },
]);
const checks = process.argv.includes('--check');
const made = mkdtempSync(join(tmpdir(), 'native-'));
try {
  for (const { compiler, options, source, name } of builds) {
    const done = spawnSync(compiler, [...options, '-o', join(made, name), source], {
      cwd: folder,
      stdio: ['ignore', 2, 2],
    });
    if (done.status !== 0) throw new Error(`${compiler} could not build ${name}`);
    if (!checks) copyFileSync(join(made, name), join(folder, name));
    else if (!readFileSync(join(made, name)).equals(readFileSync(join(folder, name))))
      throw new Error(`${name} is not what its source gives: run "node scripts/native.mjs"`);
  }
} finally {
  rmSync(made, { recursive: true, force: true });
}
