// Starts whose directory or program lies on a file system that may not answer.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { StartSpec } from '../../src/protocol/operations.ts';
import { canMount, deadMount } from '../support/dead-mount.ts';
import {
  describeHosts,
  failure,
  overKeeper,
  OWNER,
  startProcess,
  temporaryFolder,
  waitFor,
} from '../support/hosts.ts';

const closed = { kind: 'closed' } as const;

describeHosts((make) => {
  it('[E7] a directory or program elsewhere is asked about first, and then used like any other', async () => {
    const api = await make();
    // proc is no file system of a disk.
    const shell = await startProcess(api, { command: 'pwd', cwd: '/proc/sys' });
    const argv = await startProcess(api, {
      argv: ['pwd'],
      cwd: '/proc/sys',
      env: { PATH: `/proc/sys:${process.env['PATH'] ?? ''}` },
    });
    for (const id of [shell, argv]) {
      await waitFor(api, id, closed);
      expect((await api.text(OWNER, { id })).text).toBe('/proc/sys\n');
    }
    const cases = [
      [{ command: 'true', cwd: '/proc/no-such' }, 'cwd_not_found'],
      [{ command: 'true', cwd: '/proc/uptime' }, 'cwd_not_usable'],
      [{ argv: ['true'], cwd: '/proc/uptime' }, 'cwd_not_usable'],
      [{ argv: ['/proc/no-such'] }, 'program_not_found'],
      [{ argv: ['uptime'], env: { PATH: '/proc' } }, 'program_not_executable'],
      [{ argv: ['no-such'], env: { PATH: '/proc' } }, 'program_not_found'],
    ] as const;
    for (const [spec, code] of cases)
      expect([spec, (await failure(api.start(OWNER, spec as never))).code]).toEqual([spec, code]);
  });
});

// Mounting needs root and FUSE.
it.skipIf(!canMount())(
  '[E8] paths that do not answer are refused by name; everybody else, and every other start, goes on',
  async () => {
    const dead = await deadMount();
    const api = await overKeeper();
    const script = join(temporaryFolder(), 'script');
    writeFileSync(script, `#! ${dead}/interpreter -x\n`, { mode: 0o755 });
    const alive = await startProcess(api, { command: 'cat', stdin: 'pipe' });
    const starts: StartSpec[] = [
      { command: 'true', cwd: dead },
      { command: 'true', cwd: join(dead, 'deep/er') },
      { argv: ['true'], cwd: dead },
      { argv: [join(dead, 'program')] },
      { argv: [script] },
      { argv: ['no-such'], env: { PATH: `${dead}:/usr/bin` } },
      { command: 'true', cwd: dead, streams: 'pty' },
      ...Array.from({ length: 6 }, (_, n) => ({ command: 'true', cwd: join(dead, `${n}`) })),
    ];
    const refused = starts.map((spec) => failure(api.start('mallory', spec)));
    const first = Promise.race(refused).then(() => 'refused');
    // While they are asked about.
    await api.write(OWNER, { id: alive, data: Buffer.from('still here\n') });
    await waitFor(api, alive, { kind: 'text', text: 'still here' });
    const local = await startProcess(api, { argv: ['echo', 'local'] });
    const elsewhere = await startProcess(api, { command: 'pwd', cwd: '/proc/sys' });
    for (const id of [local, elsewhere]) await waitFor(api, id, closed);
    expect(await first).toBe('refused');
    for (const [index, error] of (await Promise.all(refused)).entries())
      expect([starts[index], error.code, error.message.includes(dead)]).toEqual([
        starts[index],
        'path_unresponsive',
        true,
      ]);
    expect((await api.list('mallory', {})).total).toBe(0);
    // The owner whose paths hang has its other starts.
    const own = await api.start('mallory', { command: 'exit 4', waitMs: 60_000 });
    expect(own.process.outcome).toEqual({ kind: 'exit', code: 4 });
  },
);
