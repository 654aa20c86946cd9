// The fonts of the machine, for characters that ours do not have. They are opened one after the other, only as long as
// none of them has the character; and read whole, which for some means 20 MB, only when something of them is drawn.

import { closeSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { readCharacterMap } from './character-map.ts';
import type { CharacterMap } from './character-map.ts';
import { readTables } from './font-tables.ts';
import { TrueTypeFont } from './truetype.ts';

/** Where a machine keeps its fonts. */
const FOLDERS = [
  '/usr/share/fonts',
  '/usr/local/share/fonts',
  '/Library/Fonts',
  '/System/Library/Fonts',
];
const MAX_FILES = 400;
const MAX_TABLE_BYTES = 16 * 1024 * 1024;

export class MachineFonts {
  private readonly folders: readonly string[];
  private readonly regular: Shelf;
  private readonly bold: Shelf;
  private paths: readonly string[] | undefined;
  private readonly opened = new Map<string, MachineFont>();

  constructor(folders: readonly string[] = FOLDERS) {
    this.folders = folders;
    this.regular = new Shelf(() => this.open((path) => (isStyled(path) ? 1 : 0)));
    this.bold = new Shelf(() => this.open((path) => (isBold(path) ? 0 : isStyled(path) ? 2 : 1)));
  }

  find(codePoint: number, bold: boolean): TrueTypeFont | undefined {
    return (bold ? this.bold : this.regular).find(codePoint);
  }

  private *open(rank: (path: string) => number): Generator<MachineFont> {
    this.paths ??= this.folders.flatMap(fontFiles).slice(0, MAX_FILES);
    for (const path of this.paths.toSorted((a, b) => rank(a) - rank(b))) {
      const font = this.opened.get(path) ?? new MachineFont(path);
      this.opened.set(path, font);
      yield font;
    }
  }
}

/** The fonts of one style that have been looked into, and where to get the next. */
class Shelf {
  private readonly seen: MachineFont[] = [];
  private readonly open: () => Iterator<MachineFont>;
  private rest: Iterator<MachineFont> | undefined;

  constructor(open: () => Iterator<MachineFont>) {
    this.open = open;
  }

  find(codePoint: number): TrueTypeFont | undefined {
    for (const font of this.seen) {
      const found = font.having(codePoint);
      if (found !== undefined) return found;
    }
    this.rest ??= this.open();
    for (let next = this.rest.next(); next.done !== true; next = this.rest.next()) {
      this.seen.push(next.value);
      const found = next.value.having(codePoint);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

/** A file that is broken, or not ours to read, has no characters: some other font may do. */
class MachineFont {
  private readonly path: string;
  private characters: CharacterMap | undefined;
  private font: TrueTypeFont | undefined;

  constructor(path: string) {
    this.path = path;
    this.characters = unlessBroken(() => readCharacters(path));
  }

  /** The font, if it has this character. */
  having(codePoint: number): TrueTypeFont | undefined {
    const { characters } = this;
    if (characters === undefined) return undefined;
    if ((unlessBroken(() => characters(codePoint)) ?? 0) === 0) return undefined;
    this.font ??= unlessBroken(() => TrueTypeFont.open(readFileSync(this.path)));
    if (this.font === undefined) this.characters = undefined;
    return this.font;
  }
}

function readCharacters(path: string): CharacterMap | undefined {
  const file = openSync(path, 'r');
  try {
    const read = (at: number, bytes: number): Buffer => {
      if (bytes > MAX_TABLE_BYTES) throw new RangeError('A table of the font is too large.');
      const part = Buffer.alloc(bytes);
      const got = readSync(file, part, 0, bytes, at);
      if (got < bytes) throw new RangeError('The font refers to bytes it does not have.');
      return part;
    };
    const map = readTables(read).get('cmap');
    return map && readCharacterMap(read(map.at, map.bytes), 0);
  } finally {
    closeSync(file);
  }
}

function unlessBroken<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch (error) {
    if (error instanceof RangeError || (error as NodeJS.ErrnoException).syscall !== undefined)
      return undefined;
    throw error;
  }
}

function isStyled(path: string): boolean {
  return /bold|italic|oblique|light|thin|black/i.test(path);
}

function isBold(path: string): boolean {
  return /bold/i.test(path) && !/italic|oblique|semi|demi|extra/i.test(path);
}

function fontFiles(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && /\.(?:ttf|ttc|otf)$/i.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name))
      .toSorted();
  } catch {
    return [];
  }
}
