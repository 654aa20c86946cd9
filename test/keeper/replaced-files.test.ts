// A new version takes the place of the program's files while a keeper of the old one runs.
import { cpSync, mkdirSync, renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Place, Running } from '../support/command-line.ts';
import { onCleanup, program, temporaryFolder } from '../support/hosts.ts';

it('[K26] a keeper goes on whole when its files are replaced: it has read all it needs', async () => {
  const old = temporaryFolder();
  for (const name of ['dist', 'fonts', 'package.json'])
    cpSync(program(`../../${name}`), join(old, name), { recursive: true });
  symlinkSync(program('../../node_modules'), join(old, 'node_modules'));
  const place = new Place();
  onCleanup(() => place.close());
  const script = join(old, 'dist/cli/main.js');
  const words = ['run', '--home', place.home, '--background', '--stdin'];
  const command = 'echo aaa1; read x; echo "got $x"; exit 4';
  const started = new Running([...words, command], { script, env: place.env });
  const id = (await started.ended).stdout.trim();
  renameSync(join(old, 'dist'), join(old, 'replaced'));
  mkdirSync(join(old, 'dist'));
  const found = await place.run('wait', id, '--for', 'regex=^a+1$');
  expect(found).toMatchObject({ code: 0, stdout: `${id}  aaa1\n` });
  expect(await place.run('search', id, 'a{3}\\d')).toMatchObject({ code: 0 });
  await place.run('send', id, 'it');
  expect((await place.run('wait', id)).code).toBe(4);
  expect((await place.run('logs', id)).stdout).toBe('aaa1\ngot it\n');
  expect((await place.run('run', 'echo next')).stdout).toBe('next\n');
});
