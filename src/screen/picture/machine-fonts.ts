// The fonts of the machine, for characters that the bundled ones do not have. They are opened one after the other until
// one has the character, and read as a whole, up to 20 MB, only when something is drawn from them.

import { closeSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { BrokenFont, characterTest, Font } from './font.ts';

/** Where machines keep their fonts. */
const FOLDERS = [
  '/usr/share/fonts',
  '/usr/local/share/fonts',
  '/Library/Fonts',
  '/System/Library/Fonts',
];
const MAX_FILES = 400;
/** For one glyph, which takes a millisecond; the first glyph of a large font takes a hundred. */
const LIMIT_MS = 3000;
const MAX_TABLE_BYTES = 16 * 1024 * 1024;
/** The size of one entry in the table directory. */
const ENTRY_BYTES = 16;

export class MachineFonts {
  private readonly folders: readonly string[];
  private readonly limitMs: number;
  private readonly regular: OpenedFonts;
  private readonly bold: OpenedFonts;
  private paths: readonly string[] | undefined;
  private readonly opened = new Map<string, MachineFont>();

  constructor(folders: readonly string[] = FOLDERS, limitMs = LIMIT_MS) {
    this.folders = folders;
    this.limitMs = limitMs;
    this.regular = new OpenedFonts(() => this.open((path) => (isStyled(path) ? 1 : 0)));
    this.bold = new OpenedFonts(() =>
      this.open((path) => (isBold(path) ? 0 : isStyled(path) ? 2 : 1)),
    );
  }

  find(codePoint: number, bold: boolean): Font | undefined {
    return (bold ? this.bold : this.regular).find(codePoint);
  }

  private *open(rank: (path: string) => number): Generator<MachineFont> {
    this.paths ??= this.folders.flatMap(fontFiles).slice(0, MAX_FILES);
    for (const path of this.paths.toSorted((a, b) => rank(a) - rank(b))) {
      const font = this.opened.get(path) ?? new MachineFont(path, this.limitMs);
      this.opened.set(path, font);
      yield font;
    }
  }
}

/** Which of Chinese, Japanese and Korean no font has, by one example each. */
export function scriptsWithoutFont(fonts: MachineFonts): string[] {
  const examples = { Chinese: '漢', Japanese: 'か', Korean: '한' };
  return Object.entries(examples)
    .filter(([, example]) => fonts.find(example.codePointAt(0) ?? 0, false) === undefined)
    .map(([script]) => script);
}

/** The fonts of one style that were opened so far, and the rest. */
class OpenedFonts {
  private readonly seen: MachineFont[] = [];
  private readonly open: () => Iterator<MachineFont>;
  private rest: Iterator<MachineFont> | undefined;

  constructor(open: () => Iterator<MachineFont>) {
    this.open = open;
  }

  find(codePoint: number): Font | undefined {
    for (const font of this.seen) {
      const found = font.ifHas(codePoint);
      if (found !== undefined) return found;
    }
    this.rest ??= this.open();
    for (let next = this.rest.next(); next.done !== true; next = this.rest.next()) {
      this.seen.push(next.value);
      const found = next.value.ifHas(codePoint);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

/** A file that is broken or unreadable has no characters. */
class MachineFont {
  private readonly path: string;
  private readonly limitMs: number;
  private hasCharacter: ((codePoint: number) => boolean) | undefined;
  private font: Font | undefined;

  constructor(path: string, limitMs: number) {
    this.path = path;
    this.limitMs = limitMs;
    this.hasCharacter = undefinedIfBroken(() => characterTest(readCharacterMap(path), limitMs));
  }

  /** The font, if it has this character. */
  ifHas(codePoint: number): Font | undefined {
    const { hasCharacter } = this;
    if (hasCharacter === undefined) return undefined;
    if (undefinedIfBroken(() => hasCharacter(codePoint)) !== true) return undefined;
    this.font ??= undefinedIfBroken(() => new Font(readFileSync(this.path), this.limitMs));
    const has = undefinedIfBroken(() => this.font?.has(codePoint));
    if (has === undefined) this.hasCharacter = undefined;
    return has === true ? this.font : undefined;
  }
}

/** The `cmap` table of a font file, or of the first font of a collection. */
function readCharacterMap(path: string): Buffer {
  const file = openSync(path, 'r');
  try {
    const read = (at: number, bytes: number): Buffer => {
      const part = Buffer.alloc(Math.min(bytes, MAX_TABLE_BYTES));
      if (readSync(file, part, 0, part.length, at) < bytes)
        throw new BrokenFont('The font refers to bytes it does not have, or too many.');
      return part;
    };
    const header = read(0, 16);
    const start = header.toString('latin1', 0, 4) === 'ttcf' ? header.readUInt32BE(12) : 0;
    const entries = read(start + 12, read(start + 4, 2).readUInt16BE() * ENTRY_BYTES);
    for (let at = 0; at < entries.length; at += ENTRY_BYTES)
      if (entries.toString('latin1', at, at + 4) === 'cmap')
        return read(entries.readUInt32BE(at + 8), entries.readUInt32BE(at + 12));
    throw new BrokenFont('The font has no map of characters.');
  } finally {
    closeSync(file);
  }
}

function undefinedIfBroken<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch (error) {
    if (error instanceof BrokenFont || (error as NodeJS.ErrnoException).syscall !== undefined)
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
