// Recordings as moving pictures: GIF and APNG are made here, WebM and MP4 by ffmpeg, if installed.

import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CancelSignal } from '../../base/cancel-signal.ts';
import { builtFile } from '../../base/workers/built-file.ts';
import { WORKER_PRIORITY, workerProgram } from '../../base/workers/worker-program.ts';
import type { Clock } from '../../base/clock.ts';
import { TimedQueue } from '../../base/workers/timed-queue.ts';
import { realSignal } from '../../protocol/cancellation.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { ProcessEvent } from '../../protocol/event.ts';
import type { TerminalSize } from '../../protocol/process.ts';
import type { FilmAnswer, FilmJob, FilmPart } from './film-worker.ts';
import type { FilmFormat } from './film.ts';
import { checkPictureOptions } from '../picture/pictures.ts';
import type { PictureOptions } from '../picture/pictures.ts';
import type { EventSource } from '../emulator/replica.ts';
import type { Pace } from './timeline.ts';

const PROGRAM = workerProgram(builtFile(import.meta.url, './film-worker.js'));

export interface RecordingOptions extends PictureOptions, Pace {
  readonly format: FilmFormat | 'webm' | 'mp4';
  /** The size at the start of the journal. */
  readonly size: TerminalSize;
  /** The first and the last event; by default all. */
  readonly from?: number;
  readonly to?: number;
  /** The maximum frame rate; 15 by default. */
  readonly fps?: number;
  /** 0 to 1. */
  readonly onProgress?: (done: number) => void;
  readonly signal?: CancelSignal;
}

export interface Recording {
  readonly bytes: Buffer;
  readonly frames: number;
  readonly durationMs: number;
  readonly width: number;
  readonly height: number;
}

const PADDING = 10;
const FPS = 15;
/** For one page of events and its frames. */
const BUDGET_MS = 30_000;
const MAX_HEAP_MB = 1024;
const CODECS = {
  webm: '-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -crf 32 -b:v 0 -f webm'.split(' '),
  mp4: '-c:v libx264 -preset veryfast -crf 23 -movflags frag_keyframe+empty_moov -f mp4'.split(' '),
} as const;

export async function record(
  source: EventSource,
  options: RecordingOptions,
  clock: Clock,
): Promise<Recording> {
  checkPictureOptions(options);
  const { format } = options;
  if (format === 'gif' || format === 'apng') return film(source, options, format, clock);
  const { onProgress } = options;
  // Making the frames and encoding them take about the same time.
  const half: RecordingOptions = { ...options, onProgress: (done) => onProgress?.(done / 2) };
  const frames = await film(source, half, 'apng', clock);
  const bytes = await encodeVideo(frames.bytes, CODECS[format], options);
  onProgress?.(1);
  return { ...frames, bytes };
}

async function film(
  source: EventSource,
  options: RecordingOptions,
  format: FilmFormat,
  clock: Clock,
): Promise<Recording> {
  const extent = await survey(source, options);
  const { scale = 1, theme = 'dark', showCursor = true, padding = PADDING, fps = FPS } = options;
  const { speed, idleLimitMs, from = 1, to, onProgress, signal } = options;
  const worker = new TimedQueue<FilmJob, FilmAnswer>({
    clock,
    name: 'holdfast-film',
    program: PROGRAM,
    maxHeapMb: MAX_HEAP_MB,
    priority: WORKER_PRIORITY,
    budgetMs: BUDGET_MS,
    idleMs: BUDGET_MS,
  });
  try {
    await worker.ask({
      kind: 'start',
      format,
      ...options.size,
      mostCols: extent.cols,
      mostRows: extent.rows,
      from,
      theme,
      scale,
      padding: padding * scale,
      showCursor,
      fps,
      ...(speed !== undefined && { speed }),
      ...(idleLimitMs !== undefined && { idleLimitMs }),
    });
    for await (const page of source.read(0, to)) {
      if (signal?.aborted === true)
        throw new HoldfastError('aborted', 'The recording was given up.');
      const parts = page.flatMap(partOf);
      await worker.ask({ kind: 'feed', parts }, { transfer: parts.flatMap(bufferOf) });
      onProgress?.(Math.min(1, (page.at(-1)?.seq ?? 0) / Math.max(1, extent.lastSeq)));
    }
    const { file, frames, atMs, width = 0, height = 0 } = await worker.ask({ kind: 'end' });
    return { bytes: Buffer.from(file ?? []), frames, durationMs: Math.round(atMs), width, height };
  } finally {
    await worker.close();
  }
}

/** The largest size, which all frames have, and the last event. */
async function survey(
  source: EventSource,
  { size, from = 1, to }: RecordingOptions,
): Promise<TerminalSize & { readonly lastSeq: number }> {
  let { cols, rows } = size;
  let [mostCols, mostRows, lastSeq] = [cols, rows, 0];
  for await (const page of source.read(0, to)) {
    for (const event of page) {
      lastSeq = event.seq;
      if (event.kind !== 'resize') continue;
      ({ cols, rows } = event.body);
      if (event.seq <= from) [mostCols, mostRows] = [cols, rows];
      mostCols = Math.max(mostCols, cols);
      mostRows = Math.max(mostRows, rows);
    }
  }
  return { cols: mostCols, rows: mostRows, lastSeq };
}

function partOf(event: ProcessEvent): FilmPart[] {
  const { seq, atUs } = event;
  if (event.kind === 'output') return [{ seq, atUs, bytes: new Uint8Array(event.data) }];
  if (event.kind === 'resize') return [{ seq, atUs, cols: event.body.cols, rows: event.body.rows }];
  return [];
}

function bufferOf(part: FilmPart): ArrayBuffer[] {
  return 'bytes' in part ? [part.bytes.buffer] : [];
}

/** ffmpeg seeks in its input, so the animation is a file. */
async function encodeVideo(
  apng: Buffer,
  codec: readonly string[],
  { fps = FPS, signal }: RecordingOptions,
): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-video-'));
  try {
    const input = join(folder, 'frames.apng');
    await writeFile(input, apng, { mode: 0o600 });
    // The codecs need even dimensions.
    const filter = `fps=${fps},pad=ceil(iw/2)*2:ceil(ih/2)*2`;
    const pixels = ['-vf', filter, '-pix_fmt', 'yuv420p'];
    return await runFfmpeg(['-f', 'apng', '-i', input, ...pixels, ...codec, 'pipe:1'], signal);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function runFfmpeg(args: readonly string[], signal: CancelSignal | undefined): Promise<Buffer> {
  const child = spawn('ffmpeg', ['-loglevel', 'error', '-nostdin', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(signal !== undefined && { signal: realSignal(signal) }),
  });
  const out: Buffer[] = [];
  let stderr = '';
  child.stdout.on('data', (data: Buffer) => out.push(data));
  child.stderr.on('data', (data: Buffer) => (stderr = (stderr + data.toString()).slice(-2000)));
  return new Promise((resolve, reject) => {
    child.on('error', (error: NodeJS.ErrnoException) => reject(ffmpegProblem(error)));
    child.on('close', (code) => {
      if (code === 0) resolve(Buffer.concat(out));
      else reject(new Error(`ffmpeg ended with ${code}: ${stderr.trim()}`));
    });
  });
}

function ffmpegProblem(error: NodeJS.ErrnoException): Error {
  if (error.name === 'AbortError')
    return new HoldfastError('aborted', 'The recording was given up.');
  if (error.code !== 'ENOENT') return error;
  return new HoldfastError(
    'unsupported',
    'Video needs the program "ffmpeg", which is not on the PATH; GIF, APNG and asciicast need nothing.',
    { program: 'ffmpeg' },
  );
}
