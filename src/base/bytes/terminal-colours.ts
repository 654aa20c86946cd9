// The colours of a terminal whose program asks for them; pictures with the dark theme have them too.

/** 0xrrggbb */
export type Rgb = number;

/** 16 to 231 are a cube of six steps a side, 232 to 255 are greys: the same in every terminal. */
export function paletteOf(first: readonly Rgb[]): Rgb[] {
  const step = (n: number): number => (n === 0 ? 0 : 55 + n * 40);
  const cube = Array.from(
    { length: 216 },
    (_, n) => (step(Math.floor(n / 36)) << 16) | (step(Math.floor(n / 6) % 6) << 8) | step(n % 6),
  );
  const greys = Array.from({ length: 24 }, (_, n) => (8 + n * 10) * 0x010101);
  return [...first, ...cube, ...greys];
}

/** The background is that of agent-tty's profile `reference-dark`. */
export const darkColours = {
  foreground: 0xd8dee6,
  background: 0x1e1e2e,
  cursor: 0xd8dee6,
  palette: paletteOf([
    0x2b313b, 0xe5616b, 0x86c571, 0xe2b55a, 0x5ea6f2, 0xc486e0, 0x4fbdc4, 0xc3cad4, 0x6b7482,
    0xff8087, 0xa5e08f, 0xf7d17f, 0x8cc4ff, 0xdcaaf2, 0x7adbe0, 0xf4f7fa,
  ]),
} as const;

/** As X11 writes a colour: four hexadecimal digits for each part. */
export function x11Colour(colour: Rgb): string {
  const parts = [16, 8, 0].map((shift) => ((colour >> shift) & 0xff).toString(16).padStart(2, '0'));
  return `rgb:${parts.map((part) => part.repeat(2)).join('/')}`;
}
