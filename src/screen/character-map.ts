// Which glyph of a font a character has: its table `cmap`, in the two forms that every font for screens has one of.

/** 0 when the font does not have the character. */
export type CharacterMap = (codePoint: number) => number;

export function readCharacterMap(bytes: Buffer, cmap: number): CharacterMap {
  const subtables = Array.from({ length: bytes.readUInt16BE(cmap + 2) }, (_, n) => {
    const at = cmap + bytes.readUInt32BE(cmap + 4 + n * 8 + 4);
    return { at, format: bytes.readUInt16BE(at) };
  });
  const full = subtables.find(({ format }) => format === 12);
  if (full !== undefined) return (codePoint) => segmented(bytes, full.at, codePoint);
  const basic = subtables.find(({ format }) => format === 4);
  if (basic === undefined)
    throw new RangeError('The font has no map of characters that is known here.');
  return (codePoint) => basicMap(bytes, basic.at, codePoint);
}

function segmented(bytes: Buffer, at: number, codePoint: number): number {
  let low = 0;
  let high = bytes.readUInt32BE(at + 12) - 1;
  while (low <= high) {
    const middleAt = (low + high) >> 1;
    const group = at + 16 + middleAt * 12;
    if (codePoint < bytes.readUInt32BE(group)) high = middleAt - 1;
    else if (codePoint > bytes.readUInt32BE(group + 4)) low = middleAt + 1;
    else return bytes.readUInt32BE(group + 8) + codePoint - bytes.readUInt32BE(group);
  }
  return 0;
}

function basicMap(bytes: Buffer, at: number, codePoint: number): number {
  if (codePoint > 0xffff) return 0;
  const doubled = bytes.readUInt16BE(at + 6);
  for (let n = 0; n < doubled; n += 2) {
    if (codePoint > bytes.readUInt16BE(at + 14 + n)) continue;
    const start = bytes.readUInt16BE(at + 16 + doubled + n);
    if (codePoint < start) return 0;
    const delta = bytes.readInt16BE(at + 16 + doubled * 2 + n);
    const rangeAt = at + 16 + doubled * 3 + n;
    const range = bytes.readUInt16BE(rangeAt);
    if (range === 0) return (codePoint + delta) & 0xffff;
    const glyph = bytes.readUInt16BE(rangeAt + range + (codePoint - start) * 2);
    return glyph === 0 ? 0 : (glyph + delta) & 0xffff;
  }
  return 0;
}
