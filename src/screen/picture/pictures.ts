// Makes pictures, pages and text of screens in worker threads. Small and large screens have a thread each, so that a
// huge screen delays only other huge ones. Owners take turns.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import { builtFile } from '../../base/workers/built-file.ts';
import { WORKER_PRIORITY, workerProgram } from '../../base/workers/worker-program.ts';
import type { Clock } from '../../base/clock.ts';
import { FairTurns } from '../../base/fair-turns.ts';
import { JobTooHeavy, TimedQueue } from '../../base/workers/timed-queue.ts';
import { abortedError } from '../../protocol/cancellation.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Drawing, PictureAnswer, PictureJob } from './picture-worker.ts';
import type { ScreenText } from '../view/snapshot.ts';
import { themes } from './theme.ts';
import { buffersOf, isSmall, textOf } from '../view/view.ts';
import type { View } from '../view/view.ts';

const PROGRAM = workerProgram(builtFile(import.meta.url, './picture-worker.js'));

export interface PictureOptions {
  /** `dark` by default. */
  readonly theme?: string;
  /** Pixel scale, 1 to 4. */
  readonly scale?: number;
  /** By default as the program shows it. */
  readonly showCursor?: boolean;
  /** The margin, in pixels at scale 1; 10 by default. */
  readonly padding?: number;
}

export interface PngPicture {
  readonly png: Buffer;
  readonly width: number;
  readonly height: number;
  /** Characters that are empty boxes, because no font of this machine has them. */
  readonly missing: readonly string[];
}

type JobOf<Kind> = Omit<Extract<PictureJob, { readonly kind: Kind }>, 'view' | 'kind'>;

const MAX_SCALE = 4;
const MAX_PADDING = 100;
const PADDING = 10;
/** Larger screens are not real: 200 by 100 at scale 4 are 58 million pixels. */
const MAX_PIXELS = 64_000_000;
/** Painted in some tens of milliseconds. */
const SMALL_PIXELS = 4_000_000;
const CELL_PIXELS = 9 * 18;
const BUDGET_MS = 10_000;
const IDLE_MS = 60_000;
const MAX_HEAP_MB = 512;
/** A large view takes up to 40 MB, so few are taken at once. */
const LARGE_TURNS = { atOnce: 1, perOwner: 1, mostWaiting: 16 } as const;
const SMALL_TURNS = { atOnce: 8, perOwner: 4, mostWaiting: 256 } as const;

export class Pictures {
  private readonly lanes: Readonly<Record<'small' | 'large', Lane>>;

  constructor(clock: Clock) {
    this.lanes = {
      small: openLane(clock, 'holdfast-picture', SMALL_TURNS),
      large: openLane(clock, 'holdfast-large-picture', LARGE_TURNS),
    };
  }

  /** Waits for the owner's turn to take a view and process it. */
  inTurn<T>(
    { owner, large }: { readonly owner: string; readonly large: boolean },
    act: () => Promise<T>,
    signal?: CancelSignal,
  ): Promise<T> {
    return this.lanes[large ? 'large' : 'small'].turns.run(owner, act, signal);
  }

  async png(view: View, options: PictureOptions = {}): Promise<PngPicture> {
    const drawing = drawingOf(options);
    const pixels = pixelsOf(view, drawing);
    if (pixels > MAX_PIXELS)
      throw new HoldfastError(
        'too_large',
        'The picture would be too large; choose a smaller scale.',
      );
    const job = { kind: 'png', view, ...drawing } as const;
    const small = isSmall(view) && pixels <= SMALL_PIXELS;
    const { bytes, width = 0, height = 0, missing = [] } = await this.ask(job, small);
    return { png: Buffer.from(bytes.buffer), width, height, missing };
  }

  /** SVG or HTML. */
  async page(view: View, kind: 'svg' | 'html', options: PictureOptions = {}): Promise<Buffer> {
    return this.bytes({ kind, view, ...drawingOf(options) });
  }

  /** The JSON of a structured snapshot. */
  structured(view: View, asked: JobOf<'structured'>): Promise<Buffer> {
    return this.bytes({ kind: 'structured', view, ...asked });
  }

  /** The bytes that make an empty terminal show the same screen. */
  async repaint(view: View): Promise<string> {
    return (await this.bytes({ kind: 'repaint', view })).toString();
  }

  async text(view: View): Promise<ScreenText> {
    if (isSmall(view)) return textOf(view);
    const { text } = await this.ask({ kind: 'text', view }, false);
    if (!text) throw new Error('The screen was not read.');
    return text;
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.lanes).map(({ queue }) => queue.close()));
  }

  private async bytes(job: PictureJob): Promise<Buffer> {
    return Buffer.from((await this.ask(job, isSmall(job.view))).bytes.buffer);
  }

  private async ask(job: PictureJob, small: boolean): Promise<PictureAnswer> {
    const { queue } = this.lanes[small ? 'small' : 'large'];
    try {
      // A large view is transferred and no longer usable here; a small one is copied.
      return await queue.ask(job, { transfer: small ? [] : buffersOf(job.view.look) });
    } catch (error) {
      if (!(error instanceof JobTooHeavy)) throw error;
      throw new HoldfastError(
        'too_large',
        'The screen is too large for this; ask without cells or scrollback.',
      );
    }
  }
}

interface Lane {
  readonly queue: TimedQueue<PictureJob, PictureAnswer>;
  readonly turns: FairTurns;
}

function openLane(
  clock: Clock,
  name: string,
  turns: typeof SMALL_TURNS | typeof LARGE_TURNS,
): Lane {
  return {
    queue: new TimedQueue({
      clock,
      name,
      program: PROGRAM,
      maxHeapMb: MAX_HEAP_MB,
      priority: WORKER_PRIORITY,
      budgetMs: BUDGET_MS,
      idleMs: IDLE_MS,
    }),
    turns: new FairTurns({
      ...turns,
      refuse: () =>
        new HoldfastError(
          'limit_reached',
          `${turns.mostWaiting} pictures and snapshots of this owner wait already, which is the limit.`,
          { retryAfterMs: 1000 },
        ),
      givenUp: abortedError,
    }),
  };
}

function drawingOf(options: PictureOptions): Drawing {
  checkPictureOptions(options);
  const { scale = 1, theme = 'dark', showCursor = true, padding = PADDING } = options;
  return { scale, theme, showCursor, padding };
}

function pixelsOf({ look: { cols, rows } }: View, { scale }: Drawing): number {
  return cols * rows * CELL_PIXELS * scale * scale;
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
