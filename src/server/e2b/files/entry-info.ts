// One file, folder or link as E2B's clients see it.

import type { Stats } from 'node:fs';
import { lstat, readFile, realpath, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { errnoOf } from '../../../base/disk.ts';
import { answeringMounts } from '../../codex/fs/answering-mounts.ts';
import { bytePath } from '../../codex/fs/uri.ts';

export interface EntryInfo {
  readonly name: string;
  readonly type: 'FILE_TYPE_FILE' | 'FILE_TYPE_DIRECTORY' | 'FILE_TYPE_UNSPECIFIED';
  readonly path: string;
  /** A decimal number, because JSON has no 64-bit ones. */
  readonly size: string;
  /** Permission bits. */
  readonly mode: number;
  /** "-rw-r--r--" */
  readonly permissions: string;
  readonly owner: string;
  readonly group: string;
  readonly modifiedTime: string;
  readonly symlinkTarget?: string;
}

/** For a link: type and mode are those of its target, size and permissions its own. */
export async function entryInfo(path: string, names: OwnerNames): Promise<EntryInfo> {
  await answeringMounts.check(bytePath(path));
  const own = await lstat(path);
  const isLink = own.isSymbolicLink();
  const target = isLink ? await targetOf(path) : { stats: own };
  return {
    name: basename(path),
    type: typeOf(target.stats),
    path,
    size: String(own.size),
    mode: (target.stats?.mode ?? 0) & 0o777,
    permissions: permissionsOf(own),
    owner: names.user(own.uid),
    group: names.group(own.gid),
    modifiedTime: own.mtime.toISOString(),
    ...('path' in target && { symlinkTarget: target.path }),
  };
}

async function targetOf(path: string): Promise<{ stats: Stats | undefined; path: string }> {
  try {
    return { stats: await stat(path), path: await realpath(path) };
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return { stats: undefined, path: '' };
  }
}

function typeOf(stats: Stats | undefined): EntryInfo['type'] {
  if (stats?.isDirectory()) return 'FILE_TYPE_DIRECTORY';
  return stats?.isFile() ? 'FILE_TYPE_FILE' : 'FILE_TYPE_UNSPECIFIED';
}

/** As Go writes a mode: a letter for the kind, then three times "rwx". */
function permissionsOf(stats: Stats): string {
  const kind = stats.isDirectory()
    ? 'd'
    : stats.isSymbolicLink()
      ? 'L'
      : stats.isFile()
        ? '-'
        : '?';
  const bits = Array.from('rwxrwxrwx', (letter, at) =>
    (stats.mode & (0o400 >> at)) === 0 ? '-' : letter,
  );
  return kind + bits.join('');
}

/** Names of users and groups, read once per call. A number without a name stays a number. */
export class OwnerNames {
  private readonly users: ReadonlyMap<number, string>;
  private readonly groups: ReadonlyMap<number, string>;

  private constructor(users: string, groups: string) {
    this.users = namesIn(users);
    this.groups = namesIn(groups);
  }

  static async read(): Promise<OwnerNames> {
    const [users, groups] = await Promise.all(
      ['/etc/passwd', '/etc/group'].map((file) => readFile(file, 'utf8').catch(() => '')),
    );
    return new OwnerNames(users ?? '', groups ?? '');
  }

  user(id: number): string {
    return this.users.get(id) ?? String(id);
  }

  group(id: number): string {
    return this.groups.get(id) ?? String(id);
  }
}

function namesIn(text: string): Map<number, string> {
  const names = new Map<number, string>();
  for (const line of text.split('\n').toReversed()) {
    const [name = '', , id = ''] = line.split(':');
    if (id !== '') names.set(Number(id), name);
  }
  return names;
}
