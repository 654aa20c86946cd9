// Limits and sandboxes of a start: what is enforced here, what is refused, and that every answer says which.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { HostApi } from '../../src/protocol/host-api.ts';
import type { StartSpec } from '../../src/protocol/operations.ts';
import type { ProcessInfo } from '../../src/protocol/process.ts';
import {
  OWNER,
  inProcess,
  outputText,
  overKeeper,
  pages,
  startProcess,
  temporaryFolder,
  waitFor,
} from '../support/hosts.ts';

const node = process.execPath;
const MiB = 1024 * 1024;

async function ended(host: HostApi, spec: StartSpec): Promise<ProcessInfo & { text: string }> {
  const id = await startProcess(host, spec);
  await waitFor(host, id, { kind: 'settled' });
  await waitFor(host, id, { kind: 'closed' });
  return { ...(await host.get(OWNER, { id })), text: await outputText(host, id) };
}

const means = await (await inProcess()).enforcement(OWNER, {});
const wraps = means.fs.by === 'bubblewrap';

describe('limits that the kernel has for each process', () => {
  it('[CT1] hold from the first instruction on, and the answer says by what', async () => {
    const host = await overKeeper();
    const limits = { openFiles: 64, fileBytes: 4096, cpuSeconds: 1 };
    const info = await ended(host, { command: 'ulimit -n; ulimit -f; ulimit -t', limits });
    expect(info.text).toBe('64\n8\n1\n');
    expect(info.confinement).toEqual({
      openFiles: { limit: 64, by: 'rlimit' },
      fileBytes: { limit: 4096, by: 'rlimit' },
      cpuSeconds: { limit: 1, by: 'rlimit' },
    });
    const { events } = await pages(host, info.id);
    expect(JSON.stringify(events[0])).toContain('"openFiles":{"limit":64,"by":"rlimit"}');
  });

  it('[CT2] a program that used up its processor time, or wrote too large a file, is said to have', async () => {
    const host = await overKeeper();
    const loop = await ended(host, { argv: [node, '-e', 'for (;;);'], limits: { cpuSeconds: 1 } });
    expect([loop.outcome, loop.causes]).toEqual([
      { kind: 'signal', signal: 'SIGXCPU', by: 'outside' },
      [{ kind: 'cpu_seconds' }],
    ]);
    const cwd = temporaryFolder();
    const argv = ['dd', 'if=/dev/zero', 'of=file', 'bs=64k', 'count=4', 'status=none'];
    const large = await ended(host, { argv, cwd, limits: { fileBytes: 65_536 } });
    expect(large.causes).toEqual([{ kind: 'file_bytes' }]);
    const { completions } = await host.completions(OWNER, { waitMs: 60_000 });
    expect(completions.find(({ id }) => id === large.id)).toMatchObject({
      causes: [{ kind: 'file_bytes' }],
      confinement: { fileBytes: { limit: 65_536, by: 'rlimit' } },
    });
  });

  it('[CT1] on a terminal too, and privileges can be dropped', async () => {
    const host = await overKeeper();
    const info = await ended(host, {
      command: 'ulimit -n; grep NoNewPrivs /proc/self/status; tty',
      streams: 'pty',
      limits: { openFiles: 64 },
      sandbox: { privileges: 'drop' },
    });
    expect(info.text).toMatch(/^64\r\nNoNewPrivs:\t1\r\n\/dev\/pts\/\d+\r\n$/);
    expect(info.confinement?.privileges).toEqual({ by: 'no_new_privs' });
  });

  it.skipIf(process.getuid?.() !== 0)(
    '[CT3] as another user, with its home and groups',
    async () => {
      const host = await overKeeper();
      const info = await ended(host, {
        command: 'id -un; echo $HOME $USER; cat /etc/shadow 2>&1 | grep -c denied',
        cwd: '/',
        sandbox: { user: 'nobody' },
      });
      expect(info.text).toBe('nobody\n/nonexistent nobody\n1\n');
      expect(info.confinement).toEqual({ user: { name: 'nobody', by: 'setuid' } });
      await expect(
        startProcess(host, { command: 'true', sandbox: { user: 'no-such-user' } }),
      ).rejects.toMatchObject({
        code: 'invalid_input',
      });
    },
  );
});

describe('what cannot be enforced', () => {
  it('[CT4] is refused with what is missing; with "best" it starts, and says what is missing', async () => {
    const host = await inProcess();
    // Inside another program there are no groups.
    const limits = { cpus: 1, memory: 256 * MiB };
    await expect(startProcess(host, { command: 'true', limits })).rejects.toMatchObject({
      code: 'limit_unenforceable',
      details: { field: 'memory' },
    });
    const info = await ended(host, { command: 'true', limits, enforce: 'best' });
    expect(info.confinement).toEqual({
      memory: { limit: 256 * MiB, by: 'watch' },
      missing: ['cpus'],
    });
    expect(means.cpus).toMatchObject({ by: 'no', why: expect.stringContaining('cgroup') });
  });

  it('[CT4] without bubblewrap: no folder is hidden, and a network is taken away by seccomp', async () => {
    const host = await inProcess({ bubblewrap: '/nonexistent' });
    const hide = { write: [], hide: [temporaryFolder()] };
    await expect(
      startProcess(host, { command: 'true', sandbox: { fs: hide } }),
    ).rejects.toMatchObject({
      code: 'sandbox_unenforceable',
      details: { field: 'fs.hide' },
    });
    const connect =
      "try { require('net').connect(9, '127.0.0.1').on('error', (e) => console.log(e.code)) } catch (e) { console.log(e.code) }";
    const info = await ended(host, { argv: [node, '-e', connect], sandbox: { net: 'none' } });
    expect([info.text, info.confinement]).toEqual(['EPERM\n', { net: { by: 'seccomp' } }]);
  });

  it('[CT4] wrong values are refused, not ignored', async () => {
    const host = await inProcess();
    for (const spec of [
      { limits: { memory: 5 } },
      { limits: { ram: 5 } },
      { sandbox: { fs: 'closed' } },
      { sandbox: { network: 'none' } },
      { enforce: 'perhaps' },
    ])
      await expect(
        startProcess(host, { command: 'true', ...spec } as unknown as StartSpec),
      ).rejects.toMatchObject({ code: 'invalid_input' });
  });
});

/** A folder to write to, one to read, one to hide. */
function folders() {
  const folder = temporaryFolder();
  const [open, other, secret] = ['open', 'other', 'secret'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  for (const each of [open, other, secret]) mkdirSync(each);
  writeFileSync(join(secret, 'key'), 'secret\n');
  writeFileSync(join(other, 'file'), 'readable\n');
  return { open, other, secret };
}

describe('sandboxes', () => {
  it.skipIf(!wraps)(
    '[CT5] of bubblewrap: what is not writable, not visible or not connected is not',
    async () => {
      const home = temporaryFolder();
      const host = await overKeeper({ folder: home });
      const { open, other, secret } = folders();
      const command = [
        'echo 1 > here; cat here',
        `cat ${other}/file; (echo 2 > ${other}/file) 2>&1 | grep -c 'Read-only'`,
        `ls ${secret} 2>&1 | grep -c denied; ls ${home} 2>&1 | grep -c denied`,
        'grep -c : /proc/net/dev; grep CapEff /proc/self/status',
        'test -e /proc/$PPID/comm && cat /proc/1/comm',
      ].join('; ');
      const info = await ended(host, {
        command,
        cwd: open,
        sandbox: { fs: { write: [open], hide: [secret] }, net: 'none' },
      });
      expect(info.text).toBe('1\nreadable\n1\n1\n1\n1\nCapEff:\t0000000000000000\nbwrap\n');
      expect(info.confinement).toEqual({
        fs: { by: 'bubblewrap' },
        net: { by: 'netns' },
        hidden: { by: 'bubblewrap' },
      });
      expect(info.argv).toEqual(['sh', '-c', command]);
      expect(readFileSync(join(open, 'here'), 'utf8')).toBe('1\n');
    },
  );

  it.skipIf(!wraps)(
    '[CT6] a signal reaches the command in its sandbox, which may handle it; the outcome names it',
    async () => {
      const host = await overKeeper();
      const sandbox = { fs: 'read-only' as const };
      const trap = { command: 'trap "echo got; exit 7" TERM; echo on; sleep 1000 & wait', sandbox };
      const id = await startProcess(host, trap);
      await waitFor(host, id, { kind: 'text', text: 'on' });
      await host.signal(OWNER, { id, signal: 'TERM' });
      await waitFor(host, id, { kind: 'exit' });
      expect((await host.get(OWNER, { id })).outcome).toEqual({ kind: 'exit', code: 7 });
      const plain = await startProcess(host, { command: 'echo on; exec sleep 1000', sandbox });
      await waitFor(host, plain, { kind: 'text', text: 'on' });
      await host.signal(OWNER, { id: plain, signal: 'terminate' });
      await waitFor(host, plain, { kind: 'settled' });
      expect((await host.get(OWNER, { id: plain })).outcome).toEqual({
        kind: 'signal',
        signal: 'SIGTERM',
        by: OWNER,
      });
    },
  );

  it.skipIf(!wraps)(
    '[CT6] a signal right after the start is not lost while the sandbox is being made',
    async () => {
      const host = await overKeeper();
      const spec = { argv: ['sleep', '1000'], sandbox: { fs: 'read-only' as const } };
      for (let run = 0; run < 10; run += 1) {
        const id = await startProcess(host, spec);
        const { escalated } = await host.signal(OWNER, { id, signal: 'terminate' });
        const { outcome } = await host.get(OWNER, { id });
        expect([escalated, outcome]).toEqual([
          false,
          { kind: 'signal', signal: 'SIGTERM', by: OWNER },
        ]);
      }
    },
  );

  it.skipIf(!wraps)(
    '[CT5] a program in a sandbox may have another name, and one that is not there is named',
    async () => {
      const host = await overKeeper();
      const sandbox = { fs: 'read-only' as const };
      const argv = ['/bin/sh', '-c', 'echo "$0"; [ -e /proc/$$/fd/3 ] || echo closed'];
      const renamed = await ended(host, { argv, arg0: 'renamed', sandbox });
      expect(renamed.text).toBe('renamed\nclosed\n');
      const { open } = folders();
      writeFileSync(join(open, 'program'), '#!/bin/sh\n', { mode: 0o755 });
      const hidden = { fs: { write: [], hide: [open] } };
      const missing = await ended(host, { argv: [join(open, 'program')], sandbox: hidden });
      expect([missing.text, missing.outcome]).toEqual([
        `holdfast: ${join(open, 'program')}: the sandbox hides it, or it is not executable\n`,
        { kind: 'exit', code: 126 },
      ]);
    },
  );

  it('[CT7] of Landlock, where bubblewrap does not work: what is not writable is not', async (test) => {
    const host = await inProcess({ bubblewrap: '/nonexistent' });
    const { fs } = await host.enforcement(OWNER, {});
    test.skip(fs.by !== 'landlock', fs.why);
    const { open, other } = folders();
    const command = `echo 1 > here; cat here ${other}/file; (echo 2 > ${other}/file) 2>&1 | grep -c denied; rm ${other}/file 2>&1 | grep -c denied; echo x > /dev/null; cat here`;
    const sandbox = { fs: { write: [open] } };
    const info = await ended(host, { command, cwd: open, sandbox });
    expect([info.text, info.confinement]).toEqual([
      '1\nreadable\n1\n1\n1\n',
      { fs: { by: 'landlock' } },
    ]);
    const inside = { write: [open], read: ['/', join(open, 'here')] };
    await expect(
      startProcess(host, { command: 'true', cwd: open, sandbox: { fs: inside } }),
    ).rejects.toMatchObject({ code: 'sandbox_unenforceable' });
  });

  it.skipIf(!wraps)(
    '[CT5] a folder that is missing cannot be hidden, and the working directory must be visible',
    async () => {
      const host = await inProcess();
      const { open, secret } = folders();
      const start = (fs: { write: string[]; hide?: string[] }, cwd: string) =>
        startProcess(host, { command: 'true', cwd, sandbox: { fs } });
      await expect(start({ write: [], hide: ['/no/such/folder'] }, '/')).rejects.toMatchObject({
        code: 'sandbox_unenforceable',
      });
      await expect(start({ write: [open], hide: [secret] }, secret)).rejects.toMatchObject({
        code: 'cwd_not_usable',
      });
      expect(existsSync(open)).toBe(true);
    },
  );
});
