// The picture worker: makes pictures, pages and text of screens, so that the main thread is not blocked.

import { parentPort, workerData } from 'node:worker_threads';
import { serveJobs } from '../../base/workers/timed-thread.ts';
import { Glyphs } from './glyphs.ts';
import { renderHtml } from './html.ts';
import { MachineFonts } from './machine-fonts.ts';
import { Painter } from './painter.ts';
import { encodePng } from './png.ts';
import { repaint } from '../view/repaint.ts';
import type { ScreenText, Snapshot } from '../view/snapshot.ts';
import { structuredJson } from '../view/snapshot-json.ts';
import { renderSvg } from './svg.ts';
import { themes } from './theme.ts';
import { snapshotOf, textOf } from '../view/view.ts';
import type { View } from '../view/view.ts';

export interface Drawing {
  readonly theme: string;
  readonly scale: number;
  readonly showCursor: boolean;
  /** In pixels at scale 1. */
  readonly padding: number;
}

export type PictureJob = { readonly view: View } & (
  | ({ readonly kind: 'png' } & Drawing)
  | ({ readonly kind: 'svg' } & Drawing)
  | ({ readonly kind: 'html' } & Drawing)
  | {
      readonly kind: 'structured';
      readonly sessionId: string;
      readonly include: { readonly scrollback: boolean; readonly cells: boolean };
    }
  | { readonly kind: 'text' }
  | { readonly kind: 'repaint' }
);

export interface PictureAnswer {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Only for a PNG. */
  readonly width?: number;
  readonly height?: number;
  readonly missing?: readonly string[];
  readonly text?: ScreenText;
}

/** More shades are invisible, and fewer colours make a smaller file. */
const SHADES = 24;
const glyphsOf = new Map<number, Glyphs>();
const machineFonts = new MachineFonts();

serveJobs(parentPort, workerData, answer, ({ bytes }) => [bytes.buffer]);

function answer(job: PictureJob): PictureAnswer {
  if (job.kind === 'text') return { bytes: new Uint8Array(), text: textOf(job.view) };
  const snapshot = snapshotOf(job.view);
  switch (job.kind) {
    case 'png':
      return paint(snapshot, job);
    case 'svg':
      return utf8(renderSvg(snapshot, job));
    case 'html':
      return utf8(renderHtml(snapshot, job));
    case 'repaint':
      return utf8(repaint(snapshot));
    case 'structured':
      return utf8(`${structuredJson(job.sessionId, snapshot, job.include)}\n`);
  }
}

function utf8(text: string): PictureAnswer {
  // A buffer of its own, which can be handed over: Node keeps small ones together in one.
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return { bytes };
}

function paint(shown: Snapshot, { theme, scale, showCursor, padding }: Drawing): PictureAnswer {
  let glyphs = glyphsOf.get(scale);
  if (glyphs === undefined) glyphsOf.set(scale, (glyphs = new Glyphs(scale, machineFonts)));
  const colours = themes[theme];
  if (colours === undefined) throw new Error(`There is no theme "${theme}".`);
  const options = { theme: colours, showCursor, padding: padding * scale, shades: SHADES };
  const painter = new Painter(glyphs, options);
  const picture = painter.paint(shown);
  const { width, height } = picture;
  const bytes = new Uint8Array(encodePng(picture));
  return { bytes, width, height, missing: Array.from(painter.missing) };
}
