// The picture worker: paints screens, where it holds up nobody.

import { parentPort, workerData } from 'node:worker_threads';
import { serveJobs } from '../base/timed-thread.ts';
import { Glyphs } from './glyphs.ts';
import { MachineFonts } from './machine-fonts.ts';
import { Painter } from './painter.ts';
import type { Shown } from './painter.ts';
import { encodePng } from './png.ts';
import { themes } from './theme.ts';

export interface PictureJob {
  readonly shown: Shown;
  readonly theme: string;
  readonly scale: number;
  readonly showCursor: boolean;
  readonly padding: number;
}

export interface PictureAnswer {
  readonly png: Uint8Array<ArrayBuffer>;
  readonly width: number;
  readonly height: number;
}

/** Beyond this nobody sees a difference, and fewer colours make a smaller file. */
const SHADES = 24;
const glyphsOf = new Map<number, Glyphs>();
const machineFonts = new MachineFonts();

serveJobs(parentPort, workerData, paint, ({ png }) => [png.buffer]);

function paint({ shown, theme, scale, showCursor, padding }: PictureJob): PictureAnswer {
  let glyphs = glyphsOf.get(scale);
  if (glyphs === undefined) glyphsOf.set(scale, (glyphs = new Glyphs(scale, machineFonts)));
  const colours = themes[theme];
  if (colours === undefined) throw new Error(`There is no theme "${theme}".`);
  const painter = new Painter(glyphs, { theme: colours, showCursor, padding, shades: SHADES });
  const picture = painter.paint(shown);
  return { png: new Uint8Array(encodePng(picture)), width: picture.width, height: picture.height };
}
