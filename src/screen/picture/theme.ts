// The colours of pictures, which programs also get when they ask the terminal.

import { darkColours, paletteOf, type Rgb } from '../../base/bytes/terminal-colours.ts';
import type { Colour, Style } from '../view/snapshot.ts';

export interface Theme {
  readonly name: string;
  readonly foreground: Rgb;
  readonly background: Rgb;
  readonly cursor: Rgb;
  readonly link: Rgb;
  /** All 256. */
  readonly palette: readonly Rgb[];
}

export const darkTheme: Theme = { name: 'dark', link: 0x7fb4ff, ...darkColours };

export const lightTheme: Theme = {
  name: 'light',
  foreground: 0x22272e,
  background: 0xfcfcfa,
  cursor: 0x22272e,
  link: 0x0a58ca,
  palette: paletteOf([
    0x22272e, 0xb8232f, 0x2c7a1f, 0x8f6300, 0x1d5fb8, 0x8a3aa8, 0x0f737a, 0xb4bac2, 0x5c6570,
    0xd93f4a, 0x3d9a2d, 0xb07c08, 0x2f7de0, 0xa853c9, 0x16929a, 0xe9ebee,
  ]),
};

export const themes: Readonly<Record<string, Theme>> = { dark: darkTheme, light: lightTheme };

export function hexOf(colour: Rgb): `#${string}` {
  return `#${colour.toString(16).padStart(6, '0')}`;
}

export interface Paint {
  readonly fg: Rgb;
  readonly bg: Rgb;
  readonly underline: Rgb;
}

function resolveColour(colour: Colour, theme: Theme, otherwise: Rgb): Rgb {
  if (colour === 'default') return otherwise;
  return typeof colour === 'number'
    ? (theme.palette[colour] ?? otherwise)
    : Number.parseInt(colour.slice(1), 16);
}

/** The colours of a cell, after inverse, dim and invisible. */
export function paintOf(style: Style, theme: Theme): Paint {
  // Bold text in one of the first eight colours gets the brighter one, as in most terminals.
  const bright =
    style.bold === true && typeof style.fg === 'number' && style.fg < 8 ? style.fg + 8 : style.fg;
  let fg = resolveColour(bright, theme, theme.foreground);
  let bg = resolveColour(style.bg, theme, theme.background);
  if (style.inverse === true) [fg, bg] = [bg, fg];
  if (style.dim === true) fg = mix(fg, bg, 0.45);
  if (style.invisible === true) fg = bg;
  return {
    fg,
    bg,
    underline: resolveColour(style.underlineColour ?? 'default', theme, fg),
  };
}

/** `share` of the second colour. */
export function mix(first: Rgb, second: Rgb, share: number): Rgb {
  let mixed = 0;
  for (const shift of [16, 8, 0]) {
    const a = (first >> shift) & 0xff;
    const b = (second >> shift) & 0xff;
    mixed |= Math.round(a + (b - a) * share) << shift;
  }
  return mixed;
}
