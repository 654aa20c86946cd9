// A keeper and a server of different versions. The other version is an earlier commit of this repository, built in a folder of its
// own: RELEASE names it, by default the one thirty commits ago. `npm run test:slow` runs it.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, symlinkSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect } from '../../src/client/connect.ts';
import { main, Place, root, Running } from '../support/command-line.ts';
import { onCleanup } from '../support/hosts.ts';
import { isSlowRun } from '../support/slow.ts';

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: 'pipe' }).trim();
}

/** Undefined where there is no such commit: in a packed source, or a shallow clone. */
function otherRelease(): string | undefined {
  try {
    const given = process.env['RELEASE'];
    return git(
      'rev-parse',
      '--verify',
      `${given ?? git('rev-list', '-n1', '--skip=30', 'HEAD')}^{commit}`,
    );
  } catch {
    return undefined;
  }
}

const release = isSlowRun ? otherRelease() : undefined;

describe.skipIf(release === undefined)('this version and an earlier one', () => {
  let folder: string;
  let other: string;
  afterAll(() => rm(folder, { recursive: true }));
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-release-'));
    const archive = join(folder, 'source.tar');
    git('archive', '--output', archive, release ?? '');
    execFileSync('tar', ['-xf', archive, '-C', folder]);
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    const build = `
      import { readdirSync } from 'node:fs';
      import { join } from 'node:path';
      import { build } from 'rolldown';
      const { bundlePrograms } = await import(join(process.cwd(), 'scripts/bundle-programs.mjs'));
      const dist = join(process.cwd(), 'dist');
      for (const name of readdirSync(dist, { recursive: true }).filter((each) => each.endsWith('-worker.js')))
        await build({
          input: join(dist, name),
          platform: 'node',
          external: /^(node:|@?\\w)/,
          transform: { define: { 'import.meta.url': 'globalThis.holdfastModule' } },
          output: { file: join(dist, name), format: 'es', codeSplitting: false },
          logLevel: 'warn',
        });
      await bundlePrograms(dist);
    `;
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    execFileSync(process.execPath, [tsc, '-p', 'tsconfig.build.json', '--outDir', 'dist'], {
      cwd: folder,
    });
    execFileSync(process.execPath, ['--input-type=module', '-e', build], { cwd: folder });
    other = join(folder, 'dist/cli/main.js');
  });

  const pairs = [
    ['an earlier keeper and this server', () => ({ keeper: other, server: main })],
    ['this keeper and an earlier server', () => ({ keeper: main, server: other })],
  ] as const;
  it.each(pairs)(
    '[UP11] %s work together: start, wait, read, search, stop, restart',
    async (_, programs) => {
      const { keeper, server: script } = programs();
      const place = new Place();
      onCleanup(() => place.close());
      const { env } = place;
      const words = [
        'run',
        '--background',
        '--stdin',
        '--name',
        'kept',
        'echo begun; read x; exit 4',
      ];
      const started = await new Running(words, { env, script: keeper }).ended;
      expect(started).toMatchObject({ code: 0 });
      const server = new Running(['serve', '--json'], { env, script });
      await server.until('stdout', '\n');
      const holdfast = await connect({ home: place.home, startIfMissing: false });
      onCleanup(() => holdfast.close());
      const kept = await holdfast.get(started.stdout.trim());
      const waiting = kept.waitForExit();
      expect((await holdfast.run('echo "line 17"; exit 3')).exitCode).toBe(3);
      expect((await kept.search(/beg.n/)).hits).toHaveLength(1);
      const long = await holdfast.start('sleep 1000');
      await long.terminate();
      expect((await long.waitForExit())?.outcome).toMatchObject({ kind: 'signal' });
      for (const program of [main, other])
        expect(
          (await new Running(['ps', '-q'], { env, script: program }).ended).stdout.trim(),
        ).toBe(kept.id);
      expect(await new Running(['restart'], { env, script }).ended).toMatchObject({ code: 0 });
      await new Running(['send', 'kept', 'x'], { env, script: keeper }).ended;
      expect((await waiting)?.outcome).toMatchObject({ code: 4 });
      expect((await place.run('status')).stdout).toContain('keeper');
      await server.ended;
    },
  );
});
