// Characters that are drawn by rules instead of a font, so that they meet exactly at the edges of their cells: lines
// and boxes, blocks and shades, braille, sextants, powerline arrows.

import { Outline } from './outline.ts';
import type { Coverage, Point } from './outline.ts';

/** U+2500 to U+257F: the arms up, right, down, left; 0 none, 1 light, 2 heavy, 3 double. "----" is drawn separately. */
const BOX = (
  '0101 0202 1010 2020 ---- ---- ---- ---- ---- ---- ---- ---- 0110 0210 0120 0220 ' +
  '0011 0012 0021 0022 1100 1200 2100 2200 1001 1002 2001 2002 1110 1210 2110 1120 ' +
  '2120 2210 1220 2220 1011 1012 2011 1021 2021 2012 1022 2022 0111 0112 0211 0212 ' +
  '0121 0122 0221 0222 1101 1102 1201 1202 2101 2102 2201 2202 1111 1112 1211 1212 ' +
  '2111 1121 2121 2112 2211 1122 1221 2212 1222 2122 2221 2222 ---- ---- ---- ---- ' +
  '0303 3030 0310 0130 0330 0013 0031 0033 1300 3100 3300 1003 3001 3003 1310 3130 ' +
  '3330 1013 3031 3033 0313 0131 0333 1303 3101 3303 1313 3131 3333 ---- ---- ---- ' +
  '---- ---- ---- ---- 0001 1000 0100 0010 0002 2000 0200 0020 0201 1020 0102 2010'
).split(' ');

/** Dashed lines: number of dashes, vertical, heavy. */
const DASHED: Readonly<Record<number, readonly [number, boolean, boolean]>> = Object.fromEntries(
  [
    [0x2504, 3],
    [0x2508, 4],
    [0x254c, 2],
  ].flatMap(([first = 0, dashes = 0]) =>
    [0, 1, 2, 3].map((n) => [first + n, [dashes, n >= 2, n % 2 === 1]] as const),
  ),
);

/** U+2596 to U+259F: which of upper left, upper right, lower left, lower right. */
const QUADRANTS = [0b0010, 0b0001, 0b1000, 0b1011, 0b1001, 0b1110, 0b1101, 0b0100, 0b0110, 0b0111];
const BRAILLE_DOTS = [0, 2, 4, 1, 3, 5, 6, 7];

/** Undefined for a character that a font must draw. */
export function drawnGlyph(codePoint: number, width: number, height: number): Coverage | undefined {
  const pen = new Pen(width, height);
  if (codePoint >= 0x2500 && codePoint <= 0x257f) drawBox(pen, codePoint);
  else if (codePoint >= 0x2580 && codePoint <= 0x259f) drawBlock(pen, codePoint);
  else if (codePoint >= 0x2800 && codePoint <= 0x28ff) drawBraille(pen, codePoint - 0x2800);
  else if (codePoint >= 0x1fb00 && codePoint <= 0x1fb3b) drawSextant(pen, codePoint - 0x1fb00);
  else if (codePoint >= 0xe0b0 && codePoint <= 0xe0bf) drawPowerline(pen, codePoint);
  else return undefined;
  return pen.coverage();
}

class Pen {
  readonly width: number;
  readonly height: number;
  readonly light: number;
  readonly heavy: number;
  private readonly alpha: Uint8Array;
  private outline: Outline | undefined;

  constructor(width: number, height: number) {
    this.width = width;
    this.height = height;
    this.light = Math.max(1, Math.round(width / 8));
    this.heavy = this.light * 2 + 1;
    this.alpha = new Uint8Array(width * height);
  }

  /** Edges are rounded to whole pixels, so that neighbours meet. */
  rect(x0: number, y0: number, x1: number, y1: number): void {
    const clamp = (value: number, most: number): number =>
      Math.min(Math.max(Math.round(value), 0), most);
    for (let y = clamp(y0, this.height); y < clamp(y1, this.height); y += 1) {
      const [from, to] = [clamp(x0, this.width), clamp(x1, this.width)];
      if (to > from) this.alpha.fill(255, y * this.width + from, y * this.width + to);
    }
  }

  shade(alpha: number): void {
    this.alpha.fill(alpha);
  }

  polygon(...points: readonly (readonly [number, number])[]): void {
    this.outline ??= new Outline(this.width, this.height);
    this.outline.polygon(points.map(([x, y]) => ({ x, y })));
  }

  /** A line of constant thickness through the points. */
  stroke(points: readonly Point[], thickness: number): void {
    const sides = [1, -1].map((side) =>
      points.map((point, n) => {
        const before = points[Math.max(0, n - 1)] ?? point;
        const after = points[Math.min(points.length - 1, n + 1)] ?? point;
        const length = Math.hypot(after.x - before.x, after.y - before.y) || 1;
        const reach = (side * thickness) / 2 / length;
        return [
          point.x - (after.y - before.y) * reach,
          point.y + (after.x - before.x) * reach,
        ] as const;
      }),
    );
    this.polygon(...(sides[0] ?? []), ...(sides[1] ?? []).toReversed());
  }

  coverage(): Coverage {
    const { width, height, alpha } = this;
    const drawn = this.outline?.coverage().alpha;
    return {
      width,
      height,
      alpha:
        drawn === undefined ? alpha : alpha.map((value, at) => Math.max(value, drawn[at] ?? 0)),
    };
  }
}

function drawBox(pen: Pen, codePoint: number): void {
  const dashed = DASHED[codePoint];
  if (dashed !== undefined) return drawDashes(pen, ...dashed);
  if (codePoint >= 0x256d && codePoint <= 0x2570) return drawArc(pen, codePoint - 0x256d);
  if (codePoint >= 0x2571 && codePoint <= 0x2573) return drawDiagonals(pen, codePoint - 0x2570);
  const arms = Array.from(BOX[codePoint - 0x2500] ?? '', Number);
  arms.forEach((weight, direction) => {
    if (weight > 0) drawArm(pen, arms, direction);
  });
}

/**
 * One arm, from the edge to the middle. It is computed as if it pointed right, and rotated: `along` runs outwards from
 * the middle, `before` and `behind` are the arms to its left and right.
 */
function drawArm(pen: Pen, arms: readonly number[], direction: number): void {
  const weight = arms[direction] ?? 0;
  const opposite = arms[(direction + 2) % 4] ?? 0;
  const before = arms[(direction + 3) % 4] ?? 0;
  const behind = arms[(direction + 1) % 4] ?? 0;
  const { light, heavy } = pen;
  const gap = light;
  const thick = (each: number): number => (each === 2 ? heavy : light);
  const reach = (lines: number, each: number): number => (lines === 3 ? gap + light : each);
  if (weight !== 3) {
    const crossing = Math.max(before, behind) === 3;
    const through = before === 3 && behind === 3;
    const half = Math.max(thick(before), thick(behind), thick(weight)) / 2;
    const start = opposite > 0 ? 0 : crossing ? (through ? gap : -reach(3, 0)) : -half;
    return armRect(pen, direction, { start, from: -thick(weight) / 2, to: thick(weight) / 2 });
  }
  for (const [side, here, there] of [[-1, before, behind] as const, [1, behind, before] as const]) {
    let start = 0;
    if (here === 3) start = gap;
    else if (here > 0) start = opposite > 0 ? 0 : -light / 2;
    else if (opposite === 0) start = there === 3 ? -(gap + light) : -light / 2;
    const [from, to] = side < 0 ? [-(gap + light), -gap] : [gap, gap + light];
    armRect(pen, direction, { start, from, to });
  }
}

/** From `start`, measured outwards from the middle, to the edge; across from `from` to `to`. */
interface Arm {
  readonly start: number;
  readonly from: number;
  readonly to: number;
}

function armRect(pen: Pen, direction: number, { start, from, to }: Arm): void {
  const { width, height } = pen;
  // The middle of a light line whose edges are on whole pixels.
  const cx = Math.floor((width - pen.light) / 2) + pen.light / 2;
  const cy = Math.floor((height - pen.light) / 2) + pen.light / 2;
  if (direction === 0) pen.rect(cx + from, 0, cx + to, cy - start);
  if (direction === 1) pen.rect(cx + start, cy + from, width, cy + to);
  if (direction === 2) pen.rect(cx - to, cy + start, cx - from, height);
  if (direction === 3) pen.rect(0, cy - to, cx - start, cy - from);
}

function drawDashes(pen: Pen, dashes: number, upright: boolean, isHeavy: boolean): void {
  const thickness = isHeavy ? pen.heavy : pen.light;
  const length = upright ? pen.height : pen.width;
  const middle = Math.floor(((upright ? pen.width : pen.height) - pen.light) / 2) + pen.light / 2;
  for (let n = 0; n < dashes; n += 1) {
    const from = ((n + 0.2) * length) / dashes;
    const to = ((n + 0.8) * length) / dashes;
    const [near, far] = [middle - thickness / 2, middle + thickness / 2];
    if (upright) pen.rect(near, from, far, to);
    else pen.rect(from, near, to, far);
  }
}

/** Down-right, down-left, up-left, up-right: a quarter circle with straight ends. */
function drawArc(pen: Pen, which: number): void {
  const { width, height, light } = pen;
  const cx = Math.floor((width - light) / 2) + light / 2;
  const cy = Math.floor((height - light) / 2) + light / 2;
  const right = which === 0 || which === 3;
  const down = which === 0 || which === 1;
  // One pixel shorter than to the edge, where it must be as straight as what it meets.
  const radius = Math.min(width, height) / 2 - 1;
  const [sx, sy] = [right ? 1 : -1, down ? 1 : -1];
  const points: Point[] = [{ x: cx, y: down ? height : 0 }];
  for (let step = 0; step <= 16; step += 1) {
    const angle = (step / 16) * (Math.PI / 2);
    points.push({
      x: cx + sx * radius * (1 - Math.cos(angle)),
      y: cy + sy * radius * (1 - Math.sin(angle)),
    });
  }
  points.push({ x: right ? width : 0, y: cy });
  pen.stroke(points, light);
}

function drawDiagonals(pen: Pen, which: number): void {
  const { width, height, light } = pen;
  const diagonal = (x0: number, x1: number): void =>
    pen.stroke(
      [
        { x: x0, y: 0 },
        { x: x1, y: height },
      ],
      light,
    );
  if (which !== 2) diagonal(width, 0);
  if (which !== 1) diagonal(0, width);
}

function drawBlock(pen: Pen, codePoint: number): void {
  const { width: w, height: h } = pen;
  const eighths = (n: number, of: number): number => Math.round((n * of) / 8);
  if (codePoint === 0x2580) pen.rect(0, 0, w, h / 2);
  else if (codePoint <= 0x2588) pen.rect(0, h - eighths(codePoint - 0x2580, h), w, h);
  else if (codePoint <= 0x258f) pen.rect(0, 0, eighths(0x2590 - codePoint, w), h);
  else if (codePoint === 0x2590) pen.rect(Math.round(w / 2), 0, w, h);
  else if (codePoint <= 0x2593) pen.shade((codePoint - 0x2590) * 64);
  else if (codePoint === 0x2594) pen.rect(0, 0, w, eighths(1, h));
  else if (codePoint === 0x2595) pen.rect(w - eighths(1, w), 0, w, h);
  else drawParts(pen, QUADRANTS[codePoint - 0x2596] ?? 0, 2, (n) => 3 - n);
}

/** Parts of a cell, two per row; those whose bit is set are filled. */
function drawParts(pen: Pen, bits: number, rows: number, bitOf: (part: number) => number): void {
  const { width: w, height: h } = pen;
  for (let part = 0; part < rows * 2; part += 1) {
    if (((bits >> bitOf(part)) & 1) === 0) continue;
    const [row, col] = [Math.floor(part / 2), part % 2];
    const y0 = Math.round((row * h) / rows);
    const y1 = Math.round(((row + 1) * h) / rows);
    pen.rect(col === 0 ? 0 : Math.round(w / 2), y0, col === 0 ? Math.round(w / 2) : w, y1);
  }
}

/** The two that would be a half block are left out of the row of sextants. */
function drawSextant(pen: Pen, index: number): void {
  const bits = index + 1 + (index >= 0x14 ? 1 : 0) + (index >= 0x28 ? 1 : 0);
  drawParts(pen, bits, 3, (part) => part);
}

function drawBraille(pen: Pen, bits: number): void {
  const { width: w, height: h } = pen;
  const radius = Math.max(0.9, w / 8);
  BRAILLE_DOTS.forEach((part, bit) => {
    if (((bits >> bit) & 1) === 0) return;
    const cx = ((part % 2) * 2 + 1) * (w / 4);
    const cy = (Math.floor(part / 2) * 2 + 1) * (h / 8);
    const round = Array.from({ length: 12 }, (_, n) => {
      const angle = (n / 6) * Math.PI;
      return [cx + radius * Math.cos(angle), cy + radius * Math.sin(angle)] as const;
    });
    pen.polygon(...round);
  });
}

function drawPowerline(pen: Pen, codePoint: number): void {
  const { width: w, height: h, light } = pen;
  const left = { x: 0, y: h / 2 };
  const right = { x: w, y: h / 2 };
  const round = (from: number): Point[] =>
    Array.from({ length: 17 }, (_, n) => {
      const angle = (n / 16) * Math.PI - Math.PI / 2;
      return {
        x: from === 0 ? w * Math.cos(angle) : w - w * Math.cos(angle),
        y: h / 2 + (h / 2) * Math.sin(angle),
      };
    });
  const filled = (points: readonly Point[]): void =>
    pen.polygon(...points.map(({ x, y }) => [x, y] as const));
  const [top, bottom, topRight, bottomRight] = [
    { x: 0, y: 0 },
    { x: 0, y: h },
    { x: w, y: 0 },
    { x: w, y: h },
  ];
  const shapes: readonly (() => void)[] = [
    () => filled([top, right, bottom]),
    () => pen.stroke([top, right, bottom], light),
    () => filled([topRight, left, bottomRight]),
    () => pen.stroke([topRight, left, bottomRight], light),
    () => filled(round(0)),
    () => pen.stroke(round(0), light),
    () => filled(round(1)),
    () => pen.stroke(round(1), light),
    () => filled([top, bottomRight, bottom]),
    () => pen.stroke([top, bottomRight], light),
    () => filled([topRight, bottomRight, bottom]),
    () => pen.stroke([topRight, bottom], light),
    () => filled([top, topRight, bottom]),
    () => pen.stroke([topRight, bottom], light),
    () => filled([top, topRight, bottomRight]),
    () => pen.stroke([top, bottomRight], light),
  ];
  shapes[codePoint - 0xe0b0]?.();
}
