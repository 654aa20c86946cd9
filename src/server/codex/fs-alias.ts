// Other ways to one place. A name and its links are settled by opening it; what is left is that the kernel can show one
// folder at two places (a bind mount, another process's view of the disk) and one file under two names (a hard link).
// So what is held is also compared by the filesystem it is on and where it is there, and by its number.

import { constants, type Stats } from 'node:fs';
import { lstat, open, readdir, readFile, readlink, type FileHandle } from 'node:fs/promises';
import { errnoOf } from '../../base/disk.ts';
import { isWithin, join, pathBytes, type BytePath } from './fs-uri.ts';

/** Holds a place without opening it. */
const O_PATH = 0o10000000;
const { O_DIRECTORY } = constants;

/** A place on a filesystem, whatever the mounts are called that lead there. */
interface Spot {
  readonly device: string;
  readonly path: BytePath;
  readonly isProc: boolean;
}

/** Of what is held: inside of the state directory, by whatever way; or out of what this program can see itself. */
export async function isStateByAnotherWay(held: FileHandle, home: BytePath): Promise<boolean> {
  const spot = await spotOf(held);
  if (!spot || (spot.isProc && /^\/\d/.test(spot.path))) return true;
  const state = await spotOfFolder(home);
  if (state && spot.device === state.device && isWithin(state.path, spot.path)) return true;
  return isLinkedIn(home, await held.stat());
}

/** Undefined for a mount that is none of ours: there is no telling what it shows. */
async function spotOf({ fd }: FileHandle): Promise<Spot | undefined> {
  const [info, mounts, real] = await Promise.all([
    readFile(`/proc/self/fdinfo/${fd}`, 'latin1'),
    readFile('/proc/self/mountinfo', 'latin1'),
    readlink(`/proc/self/fd/${fd}`, 'buffer'),
  ]);
  const id = /^mnt_id:\s*(\d+)$/m.exec(info)?.[1];
  return id === undefined ? undefined : spotIn(mounts, id, real.toString('latin1'));
}

async function spotOfFolder(path: BytePath): Promise<Spot | undefined> {
  const held = await open(pathBytes(path), O_PATH | O_DIRECTORY);
  try {
    return await spotOf(held);
  } finally {
    await held.close();
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
  for (const entry of await entriesOf(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() ? await holds(path, wanted) : await isSame(path, wanted)) return true;
  }
  return false;
}

interface Named {
  readonly name: BytePath;
  isDirectory(): boolean;
}

async function entriesOf(folder: BytePath): Promise<Named[]> {
  const entries = await readdir(pathBytes(folder), { withFileTypes: true, encoding: 'buffer' });
  return entries.map((entry) => ({
    name: (entry.name as unknown as Buffer).toString('latin1'),
    isDirectory: () => entry.isDirectory(),
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
