import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../../../test/support/hosts.ts';
import { Mounts } from './mounts.ts';
import { loadPosix } from '../../system/posix.ts';

function row(point: string, type: string): string {
  return `36 35 98:0 / ${point.replaceAll(' ', '\\040')} rw,noatime master:1 - ${type} source rw\n`;
}

it('[E6] a path is local when neither it nor a link on its way leads to a file system that may not answer', () => {
  const folder = temporaryFolder();
  const far = join(folder, 'far away');
  mkdirSync(join(folder, 'near/sub'), { recursive: true });
  mkdirSync(join(far, 'sub'), { recursive: true });
  writeFileSync(join(folder, 'file'), '');
  symlinkSync('far away/sub', join(folder, 'relative'));
  symlinkSync(far, join(folder, 'absolute'));
  symlinkSync('../relative', join(folder, 'near/twice'));
  symlinkSync('sub/../../file', join(folder, 'near/back'));
  symlinkSync('round', join(folder, 'round'));
  const table = row('/', 'ext4') + row(far, 'ext4') + row(far, 'fuse.sshfs');
  const paths = new Mounts(undefined, () => table).look();
  for (const local of ['', 'near/sub', 'file', 'near/back', 'missing/sub', 'file/sub', 'round'])
    expect([local, paths.find(join(folder, local)) === 'elsewhere']).toEqual([local, false]);
  for (const remote of [
    'far away',
    'far away/sub',
    'relative',
    'absolute/x',
    'near/twice',
    'near/../relative',
  ])
    expect([remote, paths.find(`${folder}/${remote}`)]).toEqual([remote, 'elsewhere']);
});

it.skipIf(!loadPosix())(
  '[E6] the table of mounts is read again only when the kernel says that it changed',
  () => {
    let reads = 0;
    const mounts = new Mounts(loadPosix(), () => {
      reads += 1;
      return row('/', 'nfs4');
    });
    for (let asked = 0; asked < 3; asked += 1) expect(mounts.look().find('/usr')).toBe('local');
    mounts.close();
    expect(reads).toBe(1);
  },
);
