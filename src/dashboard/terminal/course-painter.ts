// Paints the course of a terminal: bars for how much was printed, ticks for what else happened, a band while a person had
// the keyboard.

import type { TimePoint } from '../../protocol/dashboard/timeline.ts';
import type { Course } from './course.ts';

const BARS = 160;
const COLOURS: Readonly<Record<string, string>> = {
  run: '--accent',
  mark: '--warn',
  signal: '--bad',
  resize: '--muted',
};

interface Span {
  readonly from: number;
  readonly to: number;
}

export function paintCourse(canvas: HTMLCanvasElement, course: Course, span: Span): void {
  const ratio = globalThis.devicePixelRatio;
  const width = (canvas.width = Math.round(canvas.clientWidth * ratio));
  const height = (canvas.height = Math.round(canvas.clientHeight * ratio));
  const context = canvas.getContext('2d');
  if (!context) return;
  const style = getComputedStyle(canvas);
  const colour = (name: string): string => style.getPropertyValue(name);
  const x = (ms: number): number => ((ms - span.from) / (span.to - span.from)) * width;
  context.clearRect(0, 0, width, height);
  context.fillStyle = colour('--strong-line');
  const bars = barsOf(course.points, span);
  const most = Math.max(1, ...bars);
  bars.forEach((bytes, index) => {
    if (bytes === 0) return;
    // A logarithm: a flood must not hide a single line.
    const tall = Math.max(2 * ratio, (Math.log1p(bytes) / Math.log1p(most)) * (height - 6 * ratio));
    context.fillRect((index * width) / BARS, height - tall, width / BARS - ratio, tall);
  });
  let takenAt: number | undefined;
  for (const { kind, label, atMs } of course.marks) {
    if (kind === 'keyboard' && label.startsWith('given')) {
      context.fillStyle = colour('--accent');
      if (takenAt !== undefined) context.fillRect(takenAt, 0, x(atMs) - takenAt, 3 * ratio);
      takenAt = undefined;
    } else if (kind === 'keyboard') takenAt ??= x(atMs);
    const name = COLOURS[kind];
    if (name === undefined) continue;
    context.fillStyle = colour(name);
    context.fillRect(x(atMs), 4 * ratio, Math.max(1, ratio), height - 4 * ratio);
  }
  context.fillStyle = colour('--bad');
  for (const { exitCode, startedAtMs, durationMs = 0 } of course.runs)
    if (exitCode !== undefined && exitCode !== 0)
      context.fillRect(x(startedAtMs + durationMs) - ratio, 4 * ratio, 3 * ratio, 5 * ratio);
}

/** Bytes in each part of the time; what lies between two points is spread evenly. */
function barsOf(points: readonly TimePoint[], { from, to }: Span): number[] {
  const bars = Array.from({ length: BARS }, () => 0);
  const barOf = (ms: number): number =>
    Math.max(0, Math.min(BARS - 1, Math.floor(((ms - from) / (to - from)) * BARS)));
  for (let index = 1; index < points.length; index += 1) {
    const [before, point] = [points[index - 1], points[index]];
    if (!before || !point) continue;
    const [first, last] = [barOf(before.atMs), barOf(point.atMs)];
    const bytes = (point.offset - before.offset) / (last - first + 1);
    for (let bar = first; bar <= last; bar += 1) bars[bar] = (bars[bar] ?? 0) + bytes;
  }
  return bars;
}
