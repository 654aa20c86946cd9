// The film worker: plays one recording into an emulator of its own and makes a film. The output may be hostile, so the
// main thread ends the worker if it takes too long.

import { parentPort, workerData } from 'node:worker_threads';
import { serveJobs } from '../../base/workers/timed-thread.ts';
import { Emulator } from '../emulator/emulator.ts';
import type { EmulatorPart } from '../emulator/emulator-worker.ts';
import { Film } from './film.ts';
import type { FilmFormat } from './film.ts';
import { Glyphs } from '../picture/glyphs.ts';
import { Painter } from '../picture/painter.ts';
import type { Shown } from '../picture/painter.ts';
import { themes } from '../picture/theme.ts';
import { Timeline } from './timeline.ts';
import type { Pace } from './timeline.ts';
import { toSnapshot } from '../view/view.ts';

export interface FilmStart extends Pace {
  readonly kind: 'start';
  readonly format: FilmFormat;
  readonly cols: number;
  readonly rows: number;
  /** The largest size in the recording. */
  readonly mostCols: number;
  readonly mostRows: number;
  readonly from: number;
  readonly theme: string;
  readonly scale: number;
  readonly padding: number;
  readonly showCursor: boolean;
  readonly fps: number;
  readonly checkpoint?: Uint8Array;
}

export type FilmPart = EmulatorPart & { readonly atUs: number };

export type FilmJob =
  | FilmStart
  | { readonly kind: 'feed'; readonly parts: readonly FilmPart[] }
  | { readonly kind: 'end' };

export interface FilmAnswer {
  readonly frames: number;
  readonly atMs: number;
  /** The file, when it is complete. */
  readonly file?: Uint8Array<ArrayBuffer>;
  readonly width?: number;
  readonly height?: number;
}

/** Few, so that a film needs few colours. */
const SHADES = 12;

class Projection {
  private readonly emulator: Emulator;
  private readonly film: Film;
  private readonly timeline: Timeline;
  private readonly from: number;
  private atMs = 0;

  constructor(start: FilmStart) {
    const { scale, theme, padding, showCursor, checkpoint, format, fps } = start;
    this.emulator =
      checkpoint === undefined
        ? new Emulator(start.cols, start.rows, 0)
        : Emulator.restore(checkpoint).emulator;
    const colours = themes[theme];
    if (colours === undefined) throw new Error(`There is no theme "${theme}".`);
    const painter = new Painter(new Glyphs(scale), {
      theme: colours,
      showCursor,
      padding,
      shades: SHADES,
    });
    this.film = new Film(painter, { format, cols: start.mostCols, rows: start.mostRows, fps });
    this.timeline = new Timeline(start);
    this.from = start.from;
  }

  feed(parts: readonly FilmPart[], progress: (seq: number) => void): FilmAnswer {
    for (const part of parts) {
      progress(part.seq);
      const isShown = part.seq >= this.from;
      if (isShown) {
        this.atMs = this.timeline.at(part.atUs);
        this.film.before(this.atMs, this.look);
      }
      if ('bytes' in part) this.emulator.feed(part.bytes);
      else this.emulator.resize(part.cols, part.rows);
      // In the middle of a synchronized update the screen is half drawn.
      if (isShown && !this.emulator.isUpdating) this.film.changed(this.atMs);
    }
    return { frames: this.film.frames, atMs: this.atMs };
  }

  end(): FilmAnswer {
    const file = new Uint8Array(this.film.end(this.atMs, this.look));
    return { frames: this.film.frames, atMs: this.atMs, file, ...this.film.size };
  }

  private readonly look = (): Shown => toSnapshot(this.emulator.look(0), 0, []);
}

let projection: Projection | undefined;

// xterm.js reports its own slowness with this, to the stderr of the whole program.
console.warn = () => undefined;

serveJobs(parentPort, workerData, answer, ({ file }) => (file === undefined ? [] : [file.buffer]));

function answer(job: FilmJob, progress: (seq: number) => void): FilmAnswer {
  if (job.kind === 'start') {
    projection = new Projection(job);
    return { frames: 0, atMs: 0 };
  }
  if (projection === undefined) throw new Error('The film has not begun.');
  return job.kind === 'feed' ? projection.feed(job.parts, progress) : projection.end();
}
