// What a start asks for opens nothing that its sandbox hides: the state directory, and the machine's own /proc, /sys and /dev.

import { existsSync, lstatSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { StartSpec } from '../../src/protocol/operations.ts';
import { Tokens, type TokenPolicy } from '../../src/server/http/tokens.ts';
import { inProcess, OWNER, overKeeper, temporaryFolder } from '../support/hosts.ts';

const means = await (await inProcess()).enforcement(OWNER, {});
const hides = means.hidden.by === 'bubblewrap';

/** A keeper with a hidden token of alice, and a secret in its home. */
async function hidden({
  home = temporaryFolder(),
  policy,
  bubblewrap,
}: { home?: string; policy?: TokenPolicy; bubblewrap?: string } = {}) {
  const link = await overKeeper({ folder: home, bubblewrap });
  new Tokens(home, systemClock).create('alice', undefined, undefined, policy);
  writeFileSync(join(home, 'secret'), 'SECRET\n');
  const run = async (spec: StartSpec): Promise<string> => {
    const { process } = await link.start('alice', { waitMs: 60_000, settleMs: 1000, ...spec });
    const { text } = await link.text('alice', { id: process.id });
    return text;
  };
  return { home, run };
}

describe.skipIf(!hides)('a sandbox that a start asks for', () => {
  it('[CT26] opens no file and no folder of the state directory, by whatever name', async () => {
    const { home, run } = await hidden();
    const link = join(temporaryFolder(), 'link');
    symlinkSync(join(home, 'journals'), link);
    for (const path of ['tokens.json', 'journals', 'keeper.sock', '.'].map((name) =>
      join(home, name),
    ))
      for (const fs of [{ write: [path] }, { write: [], read: ['/', path] }])
        await expect(run({ command: 'true', cwd: '/', sandbox: { fs } })).rejects.toMatchObject({
          code: 'sandbox_unenforceable',
          details: { path },
        });
    await expect(
      run({ command: 'true', cwd: '/', sandbox: { fs: { write: [link] } } }),
    ).rejects.toMatchObject({ code: 'sandbox_unenforceable' });
    const text = await run({
      command: `cat ${home}/secret; ls ${home}; echo end`,
      cwd: '/',
      sandbox: { fs: { write: ['/'] } },
    });
    expect(text).toMatch(/denied[^]*denied[^]*end\n$/);
  });

  it("[CT26] leads to no process, setting or cgroup of others by the machine's /proc, /sys and /dev", async () => {
    const { run } = await hidden();
    for (const path of ['/proc', '/proc/sys', '/proc/self', '/sys', '/sys/fs/cgroup', '/dev'])
      await expect(
        run({ command: 'true', cwd: '/', sandbox: { fs: { write: [path] } } }),
      ).rejects.toMatchObject({ code: 'sandbox_unenforceable' });
    const look = [
      'ls /proc | grep -c "^[0-9]"',
      'test -w /proc/sys/kernel/core_pattern && echo settings',
      'find /sys/fs/cgroup -name cgroup.procs -writable | grep -q . && echo groups',
      'ls /dev | grep -cE "^(vd|sd|nvme|loop)"',
      'echo x > /dev/null && echo null',
    ].join('; ');
    const fs = { write: ['/dev/null', '/dev/shm'], read: ['/', '/proc', '/sys', '/dev'] };
    const [seen, ...rest] = (await run({ command: look, cwd: '/', sandbox: { fs } })).split('\n');
    expect(Number(seen)).toBeLessThan(10);
    expect(rest).toEqual(['0', 'null', '']);
  });

  it('[CT29] moves neither the state directory nor a folder around it', async () => {
    const around = temporaryFolder();
    const home = join(around, 'folder', 'home');
    mkdirSync(home, { recursive: true, mode: 0o700 });
    const { run } = await hidden({ home });
    const moved = join(around, 'moved');
    for (const from of [home, join(around, 'folder')]) {
      const rename = `perl -e 'print rename("${from}", "${moved}") ? "moved" : "refused"'`;
      expect(await run({ command: rename, cwd: '/' })).toBe('refused');
    }
    expect(existsSync(moved)).toBe(false);
    // Files beside it can be.
    expect(await run({ command: `cd ${around}/folder && touch a && mv a b && ls b` })).toBe('b\n');
  });

  it('[CT26] is held to the folders of its token also where a link leads out of them', async () => {
    const around = temporaryFolder();
    const [folder, outside] = [join(around, 'inside'), join(around, 'outside')];
    const deeper = join(folder, 'deeper');
    for (const each of [folder, outside, deeper]) mkdirSync(each);
    symlinkSync('../outside', join(folder, 'link'));
    const { run } = await hidden({
      policy: { level: 'hidden', sandbox: { fs: { write: [folder] } } },
    });
    const ask = (path: string): StartSpec => ({
      command: `cd ${path}; for f in file ../file ${outside}/file; do (: > $f) 2>/dev/null && echo $f; done; id -u; ls /proc | grep -c '^[0-9]'; echo > /dev/null`,
      cwd: folder,
      sandbox: { fs: { write: [path] } },
    });
    await expect(run(ask(join(folder, 'link')))).rejects.toMatchObject({ code: 'above_ceiling' });
    const [written, user, seen] = (await run(ask(deeper))).split('\n');
    expect([written, user]).toEqual(['file', String(process.getuid?.())]);
    expect(Number(seen)).toBeLessThan(10);
  });
});

describe.skipIf(!hides)('a path that is replaced while the sandbox is being made', () => {
  it.each([1, 2])(
    '[CT26] leads to what is covered, before bubblewrap number %i of its start resolves it',
    async (number) => {
      const [home, around] = [temporaryFolder(), temporaryFolder()];
      const [asked, armed] = [join(around, 'asked'), join(around, 'armed')];
      const swap = `mv ${asked} ${around}/moved; ln -s ${relative(around, home)} ${asked}; rm ${armed}`;
      const program = join(around, 'bwrap');
      const script = `#!/bin/sh
        [ -e ${armed} ] && { read -r n < ${armed}; if [ $n = 1 ]; then ${swap}; else echo 1 > ${armed}; fi; }
        exec bwrap "$@"`;
      writeFileSync(program, script, { mode: 0o755 });
      const { run } = await hidden({ home, bubblewrap: program });
      const before = await run({ command: 'echo works', sandbox: { fs: { write: [around] } } });
      expect(before).toBe('works\n');
      mkdirSync(asked);
      writeFileSync(armed, `${number}\n`);
      const look = `cat ${asked}/secret ${home}/secret; ls ${asked} ${home}; echo end`;
      const text = await run({
        command: look,
        cwd: '/',
        sandbox: { fs: { write: [asked, armed, around] } },
      });
      expect(lstatSync(asked).isSymbolicLink()).toBe(true);
      expect(text).not.toMatch(/SECRET|tokens\.json/);
    },
  );
});
