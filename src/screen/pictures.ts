// Pictures of screens as PNG files, painted in a worker of their own.

import { builtFile } from '../base/built-file.ts';
import type { Clock } from '../base/clock.ts';
import { TimedQueue } from '../base/timed-queue.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { PictureAnswer, PictureJob } from './picture-worker.ts';
import type { Snapshot } from './snapshot.ts';
import { themes } from './theme.ts';

export interface PictureOptions {
  /** `dark` unless told. */
  readonly theme?: string;
  /** 1 to 4: pixels in place of one. */
  readonly scale?: number;
  /** Shown when the program shows it, unless told. */
  readonly showCursor?: boolean;
  /** Around the screen, in pixels at scale 1; 10 unless told. */
  readonly padding?: number;
}

export interface PngPicture {
  readonly png: Buffer;
  readonly width: number;
  readonly height: number;
}

const MAX_SCALE = 4;
const MAX_PADDING = 100;
const PADDING = 10;
/** More cells than this at once are nobody's screen: 200 by 100, at scale 4 a picture of 58 million pixels. */
const MAX_PIXELS = 64_000_000;
const CELL_PIXELS = 9 * 18;
const BUDGET_MS = 10_000;
const IDLE_MS = 60_000;
const MAX_HEAP_MB = 512;

export class Pictures {
  private readonly queue: TimedQueue<PictureJob, PictureAnswer>;

  constructor(clock: Clock) {
    this.queue = new TimedQueue({
      clock,
      name: 'holdfast-picture',
      file: builtFile(import.meta.url, './picture-worker.js'),
      maxHeapMb: MAX_HEAP_MB,
      budgetMs: BUDGET_MS,
      idleMs: IDLE_MS,
    });
  }

  async png(snapshot: Snapshot, options: PictureOptions = {}): Promise<PngPicture> {
    const { scale = 1, theme = 'dark', showCursor = true, padding = PADDING } = options;
    checkPictureOptions(options);
    if (snapshot.cols * snapshot.rows * CELL_PIXELS * scale * scale > MAX_PIXELS)
      throw new HoldfastError(
        'too_large',
        'The picture would be too large; choose a smaller scale.',
      );
    const { cols, rows, rowsShown, styles, cursor } = snapshot;
    const shown = { cols, rows, rowsShown, styles, cursor };
    const job = { shown, theme, scale, showCursor, padding: padding * scale };
    const { png, width, height } = await this.queue.ask(job);
    return { png: Buffer.from(png.buffer), width, height };
  }

  close(): Promise<void> {
    return this.queue.close();
  }
}

export function checkPictureOptions({
  scale = 1,
  theme = 'dark',
  padding = 0,
}: PictureOptions): void {
  const problem = (field: string, message: string): HoldfastError =>
    new HoldfastError('invalid_input', message, { field });
  if (!Number.isInteger(scale) || scale < 1 || scale > MAX_SCALE)
    throw problem('scale', `The scale is a whole number from 1 to ${MAX_SCALE}.`);
  if (!Object.hasOwn(themes, theme))
    throw problem('theme', `The themes are ${Object.keys(themes).join(' and ')}.`);
  if (!Number.isInteger(padding) || padding < 0 || padding > MAX_PADDING)
    throw problem('padding', `The padding is a whole number from 0 to ${MAX_PADDING}.`);
}
