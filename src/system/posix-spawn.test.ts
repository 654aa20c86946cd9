import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { loadPosix } from './posix.ts';
import { openLibrary, type Binding } from './posix-library.ts';
import { bindSpawn } from './posix-spawn.ts';

/** The C library without the function that musl does not have. */
function asMusl(): Binding {
  const library = openLibrary();
  const plain: Binding['plain'] = (definition) => {
    if (definition.includes('addclosefrom')) throw new Error('not found');
    return library.plain(definition);
  };
  return { ...library, plain };
}

test('[P26] without closefrom, as with musl, a child has its three descriptors and no inherited one', async () => {
  const posix = loadPosix();
  if (!posix) throw new Error('no system calls here');
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-spawn-'));
  const file = join(folder, 'printed');
  const output = openSync(file, 'w');
  const inherited = 77;
  try {
    // dup2 leaves it open for children, as a shell's `77>file` does.
    posix.redirect(output, inherited);
    const starter = bindSpawn(asMusl());
    const script = 'cd /proc/self/fd; for fd in *; do [ -e /proc/$$/fd/$fd ] && echo $fd; done';
    const shell = { file: '/bin/sh', argv: ['sh', '-c', script], env: [], cwd: '/' };
    const pid = await starter.spawn(shell, { output, errors: output });
    while (posix.wait(pid) === undefined);
    expect(readFileSync(file, 'utf8')).toBe('0\n1\n2\n');
  } finally {
    for (const fd of [output, inherited]) closeSync(fd);
    rmSync(folder, { recursive: true });
  }
});
