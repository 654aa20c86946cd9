// Which paths are on local file systems. Reads only the kernel's mount table and directories on local file systems, so
// that it never waits for a network or FUSE file system (ADR 20).

import { closeSync, lstatSync, openSync, readFileSync, readlinkSync } from 'node:fs';
import type { Posix } from '../../system/posix.ts';
import { tryQuery } from '../../system/posix-library.ts';
import { refuseBlindLook } from './spawn-error.ts';

const TABLE = '/proc/self/mountinfo';
/** File systems that depend on no other machine or process. Missing ones only cost a probe. */
const LOCAL_TYPES = new Set(
  'aufs bcachefs btrfs devtmpfs erofs exfat ext2 ext3 ext4 f2fs iso9660 jfs nilfs2 ntfs3 overlay ramfs reiserfs squashfs tmpfs udf vfat xfs zfs'.split(
    ' ',
  ),
);
const SYSTEM = /^\/usr(?:\/|$)/;
/** As many links as the kernel follows. */
const MOST_LINKS = 40;

/** Whether the topmost file system is local, by mount point. */
type Table = ReadonlyMap<string, boolean>;

export class Mounts {
  private readonly posix: Posix | undefined;
  private readonly read: () => string;
  /** Kept open: the kernel reports changes of the table on it. */
  private fd: number | undefined;
  private table: Table | undefined;
  private systemDirectories = new Set<string>();

  constructor(posix: Posix | undefined, read = (): string => readFileSync(TABLE, 'utf8')) {
    this.posix = posix;
    this.read = read;
  }

  /** For paths in one step of the event loop: results are cached. */
  look(): LocalPaths {
    if (!this.table || this.changed()) {
      // The kernel reports a change once: if the table cannot be read then, it is no longer trusted.
      this.table = undefined;
      this.table = this.readTable();
      this.systemDirectories = new Set(['']);
    }
    return new LocalPaths(this.table, this.systemDirectories);
  }

  close(): void {
    if (this.fd !== undefined) closeSync(this.fd);
    this.fd = undefined;
    this.table = undefined;
  }

  private changed(): boolean {
    const { fd, posix } = this;
    return fd === undefined || !posix || (tryQuery(() => posix.hasNews(fd)) ?? true);
  }

  private readTable(): Table {
    try {
      if (this.posix) this.fd ??= openSync(TABLE, 'r');
      return parseTable(this.read());
    } catch (error) {
      refuseBlindLook(error, TABLE);
      // There is no such table: assume that all paths are local.
      return new Map();
    }
  }
}

function parseTable(text: string): Table {
  const table = new Map<string, boolean>();
  for (const line of text.split('\n')) {
    const [before = '', after = ''] = line.split(' - ');
    const point = before.split(' ')[4];
    const type = after.split(' ')[0];
    if (point === undefined || type === undefined) continue;
    const path = point.replace(/\\(\d{3})/g, (_, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
    // If the root itself hangs, everything does.
    table.set(path === '/' ? '' : path, path === '/' || LOCAL_TYPES.has(type));
  }
  return table;
}

/** Where a path leads: to something local, to nothing, or to a file system that may hang. */
export type Whereabouts = 'local' | 'nothing' | 'elsewhere';

export class LocalPaths {
  private readonly table: Table;
  private readonly known = new Map<string, Whereabouts>();
  /** By path: where its file system that may hang is mounted. */
  private readonly mounts = new Map<string, string>();
  /** Directories on local file systems that are not links. */
  private readonly directories = new Set<string>();
  /** The same for system directories: cached as long as the mounts do not change. */
  private readonly systemDirectories: Set<string>;

  constructor(table: Table, systemDirectories: Set<string>) {
    this.table = table;
    this.systemDirectories = systemDirectories;
  }

  /** Resolves an absolute path with all its links. */
  find(path: string): Whereabouts {
    const known = this.known.get(path);
    if (known) return known;
    const found = this.follow(path);
    this.known.set(path, found);
    return found;
  }

  /** Where the file system that may hang is mounted, for a path that leads to one. */
  mountOf(path: string): string | undefined {
    return this.find(path) === 'elsewhere' ? this.mounts.get(path) : undefined;
  }

  private follow(path: string): Whereabouts {
    const rest = path.split('/').toReversed();
    let at = '';
    for (let links = 0; rest.length > 0;) {
      const part = rest.pop() ?? '';
      if (part === '' || part === '.') continue;
      if (part === '..') {
        at = at.slice(0, Math.max(0, at.lastIndexOf('/')));
        continue;
      }
      const next = `${at}/${part}`;
      const link = this.step(next);
      if (link === 'elsewhere') this.mounts.set(path, next);
      if (link === 'elsewhere' || link === 'nothing') return link;
      if (link === undefined) {
        at = next;
        continue;
      }
      links += 1;
      if (links > MOST_LINKS) return 'nothing';
      if (link.startsWith('/')) at = '';
      rest.push(...link.split('/').toReversed());
    }
    return 'local';
  }

  /** The target of a link; undefined if it is not a link. Its directory is known to be local. */
  private step(path: string): string | undefined {
    if (this.directories.has(path) || this.systemDirectories.has(path)) return undefined;
    const local = this.table.get(path);
    if (local === false) return 'elsewhere';
    if (local === undefined) {
      try {
        const found = lstatSync(path, { throwIfNoEntry: false });
        if (!found) return 'nothing';
        if (found.isSymbolicLink()) return `./${readlinkSync(path)}`.replace(/^\.\/\//, '/');
        if (!found.isDirectory()) return undefined;
      } catch (error) {
        refuseBlindLook(error, path);
        // Not accessible or too long: the spawn reports that at once.
        return 'nothing';
      }
    }
    (SYSTEM.test(path) ? this.systemDirectories : this.directories).add(path);
    return undefined;
  }
}
