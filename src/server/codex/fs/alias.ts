// Detects other paths to the state directory. Opening a path resolves its name and links, but the kernel can show one
// folder at two places (a bind mount, another process's root) and one file under two names (a hard link). So an open
// file is also compared by its filesystem, its path there, and its inode.

import {
  closeSync,
  constants,
  openSync,
  readFileSync,
  readlinkSync,
  type Dirent,
  type Stats,
} from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { errnoOf } from '../../../base/disk.ts';
import { isWithin, join, pathBytes, type BytePath } from './uri.ts';

/** Refers to a path without opening it. */
const O_PATH = 0o10000000;
const { O_DIRECTORY } = constants;

/** A position on a filesystem, independent of mount points. */
interface MountLocation {
  readonly device: string;
  readonly path: BytePath;
  readonly isProc: boolean;
}

/** The state directory, and whether an open file lies in it. */
export class StateFolder {
  readonly path: BytePath;
  private known: MountLocation | undefined;

  constructor(path: BytePath) {
    this.path = path;
  }

  /** Whether an open file lies in this folder by any path, or cannot be seen by this process. */
  async contains(fd: number, stats?: Stats): Promise<boolean> {
    const spot = locate(fd);
    if (!spot || (spot.isProc && /^\/\d/.test(spot.path))) return true;
    const own = (this.known ??= locateFolder(this.path));
    if (own && spot.device === own.device && isWithin(own.path, spot.path)) return true;
    return stats !== undefined && isLinkedInto(this.path, stats);
  }
}

/** Undefined for a mount that is not ours: what it shows is unknown. Synchronous, because /proc is in memory. */
function locate(fd: number): MountLocation | undefined {
  const id = /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1];
  if (id === undefined) return undefined;
  const real = readlinkSync(`/proc/self/fd/${fd}`, 'buffer').toString('latin1');
  return locateIn(readFileSync('/proc/self/mountinfo', 'latin1'), id, real);
}

function locateFolder(path: BytePath): MountLocation | undefined {
  const fd = openSync(pathBytes(path), O_PATH | O_DIRECTORY);
  try {
    return locate(fd);
  } finally {
    closeSync(fd);
  }
}

/** `mounts`: "36 35 98:0 /part/of/filesystem /mount/point options… - type source options", names with octal escapes. */
export function locateIn(mounts: string, id: string, real: BytePath): MountLocation | undefined {
  const line = mounts.split('\n').find((each) => each.startsWith(`${id} `));
  if (line === undefined) return undefined;
  const [, , device = '', root = '', point = ''] = line.split(' ').map(unescaped);
  if (!isWithin(point, real)) return undefined;
  const below = point === '/' ? real.slice(1) : real.slice(point.length + 1);
  const path = below === '' ? root : join(root, below);
  return { device, path, isProc: / - proc /.test(line) };
}

function unescaped(field: string): string {
  return field.replaceAll(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}

/** Holdfast's files are private: a file that others may read is not ours and need not be searched for. */
async function isLinkedInto(home: BytePath, stats: Stats): Promise<boolean> {
  if (!stats.isFile() || stats.nlink < 2 || (stats.mode & 0o077) !== 0) return false;
  return contains(home, stats);
}

async function contains(folder: BytePath, wanted: Stats): Promise<boolean> {
  for (const { name, entry } of await readEntries(folder)) {
    const path = join(folder, name);
    if (entry.isDirectory() ? await contains(path, wanted) : await isSame(path, wanted))
      return true;
  }
  return false;
}

interface Named {
  readonly name: BytePath;
  readonly entry: Dirent;
}

async function readEntries(folder: BytePath): Promise<Named[]> {
  const options = { withFileTypes: true, encoding: 'buffer' as BufferEncoding } as const;
  const entries = await readdir(pathBytes(folder), options);
  // Buffers, because a name need not be UTF-8; Node's types do not allow it.
  return entries.map((entry) => ({
    name: (entry.name as unknown as Buffer).toString('latin1'),
    entry,
  }));
}

async function isSame(path: BytePath, { dev, ino }: Stats): Promise<boolean> {
  try {
    const found = await lstat(pathBytes(path));
    return found.ino === ino && found.dev === dev;
  } catch (error) {
    // Journals come and go.
    if (errnoOf(error) === 'ENOENT') return false;
    throw error;
  }
}
