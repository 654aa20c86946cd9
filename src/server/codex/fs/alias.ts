// Other ways to one place. A name and its links are settled by opening it; what is left is that the kernel can show one
// folder at two places (a bind mount, another process's view of the disk) and one file under two names (a hard link).
// So what is held is also compared by the filesystem it is on and where it is there, and by its number.

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

/** Holds a place without opening it. */
const O_PATH = 0o10000000;
const { O_DIRECTORY } = constants;

/** A place on a filesystem, whatever the mounts are called that lead there. */
interface Spot {
  readonly device: string;
  readonly path: BytePath;
  readonly isProc: boolean;
}

/** The state directory, as it is told from whatever else is held. */
export class StateFolder {
  readonly path: BytePath;
  private known: Spot | undefined;

  constructor(path: BytePath) {
    this.path = path;
  }

  /** Of a held place: inside of this, by whatever way; or out of what this program can see itself. */
  async holds(fd: number, stats?: Stats): Promise<boolean> {
    const spot = spotOf(fd);
    if (!spot || (spot.isProc && /^\/\d/.test(spot.path))) return true;
    const own = (this.known ??= spotOfFolder(this.path));
    if (own && spot.device === own.device && isWithin(own.path, spot.path)) return true;
    return stats !== undefined && isLinkedIn(this.path, stats);
  }
}

/** Undefined for a mount that is none of ours: there is no telling what it shows. Of memory, so without a thread's help. */
function spotOf(fd: number): Spot | undefined {
  const id = /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1];
  if (id === undefined) return undefined;
  const real = readlinkSync(`/proc/self/fd/${fd}`, 'buffer').toString('latin1');
  return spotIn(readFileSync('/proc/self/mountinfo', 'latin1'), id, real);
}

function spotOfFolder(path: BytePath): Spot | undefined {
  const fd = openSync(pathBytes(path), O_PATH | O_DIRECTORY);
  try {
    return spotOf(fd);
  } finally {
    closeSync(fd);
  }
}

/** `mounts`: "36 35 98:0 /part/of/filesystem /mount/point options… - type source options", names with octal escapes. */
export function spotIn(mounts: string, id: string, real: BytePath): Spot | undefined {
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

/** Whatever Holdfast writes is private: a file that others may read is none of its own, and need not be looked for. */
async function isLinkedIn(home: BytePath, stats: Stats): Promise<boolean> {
  if (!stats.isFile() || stats.nlink < 2 || (stats.mode & 0o077) !== 0) return false;
  return holds(home, stats);
}

async function holds(folder: BytePath, wanted: Stats): Promise<boolean> {
  for (const { name, entry } of await entriesOf(folder)) {
    const path = join(folder, name);
    if (entry.isDirectory() ? await holds(path, wanted) : await isSame(path, wanted)) return true;
  }
  return false;
}

interface Named {
  readonly name: BytePath;
  readonly entry: Dirent;
}

async function entriesOf(folder: BytePath): Promise<Named[]> {
  const options = { withFileTypes: true, encoding: 'buffer' as BufferEncoding } as const;
  const entries = await readdir(pathBytes(folder), options);
  // Buffers, because a name need not be UTF-8; the types of this version do not know it.
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
