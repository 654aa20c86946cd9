// Shapes of closed contours, and the exact coverage of each pixel, by summing signed areas along the edges, so that
// small letters are smooth.

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** The coverage of each pixel, 0 to 255, row by row. */
export interface Coverage {
  readonly width: number;
  readonly height: number;
  readonly alpha: Uint8Array;
}

/** A curve far outside the picture needs no finer steps than one that fills it. */
const MAX_STEPS = 200;

export class Outline {
  private readonly width: number;
  private readonly height: number;
  /** For each pixel, what an edge adds to it and to everything right of it. */
  private readonly area: Float32Array;

  constructor(width: number, height: number) {
    this.width = width;
    this.height = height;
    this.area = new Float32Array(width * height + 2);
  }

  polygon(points: readonly Point[]): void {
    points.forEach((point, index) =>
      this.line(point, points[(index + 1) % points.length] ?? point),
    );
  }

  /** A quadratic Bézier curve. */
  curve(from: Point, control: Point, to: Point): void {
    this.flatten(from, bend(from, control, to), (t) => [(1 - t) ** 2, 2 * (1 - t) * t, t * t], [
      from,
      control,
      to,
    ]);
  }

  /** A cubic Bézier curve. */
  cubic(from: Point, [first, second, to]: readonly [Point, Point, Point]): void {
    const bends = bend(from, first, second) + bend(first, second, to);
    const weights = (t: number): number[] => {
      const u = 1 - t;
      return [u ** 3, 3 * u ** 2 * t, 3 * u * t * t, t ** 3];
    };
    this.flatten(from, bends, weights, [from, first, second, to]);
  }

  private flatten(
    from: Point,
    bends: number,
    weights: (t: number) => readonly number[],
    points: readonly Point[],
  ): void {
    const steps = Math.min(MAX_STEPS, Math.max(1, Math.ceil(Math.sqrt(bends * 3))));
    let last = from;
    for (let step = 1; step <= steps; step += 1) {
      const shares = weights(step / steps);
      const next = {
        x: points.reduce((total, { x }, n) => total + x * (shares[n] ?? 0), 0),
        y: points.reduce((total, { y }, n) => total + y * (shares[n] ?? 0), 0),
      };
      this.line(last, next);
      last = next;
    }
  }

  line(from: Point, to: Point): void {
    if (from.y === to.y) return;
    const [direction, top, bottom] = from.y < to.y ? [1, from, to] : [-1, to, from];
    const slope = (bottom.x - top.x) / (bottom.y - top.y);
    const firstRow = Math.max(0, Math.floor(top.y));
    const lastRow = Math.min(this.height, Math.ceil(bottom.y));
    for (let row = firstRow; row < lastRow; row += 1) {
      const y0 = Math.max(row, top.y);
      const y1 = Math.min(row + 1, bottom.y);
      if (y1 <= y0) continue;
      const x0 = top.x + (y0 - top.y) * slope;
      const x1 = top.x + (y1 - top.y) * slope;
      this.edge(row, Math.min(x0, x1), Math.max(x0, x1), direction * (y1 - y0));
    }
  }

  coverage(): Coverage {
    const { width, height, area } = this;
    const alpha = new Uint8Array(width * height);
    for (let row = 0; row < height; row += 1) {
      let total = 0;
      for (let at = row * width; at < (row + 1) * width; at += 1) {
        total += area[at] ?? 0;
        alpha[at] = Math.round(Math.min(1, Math.abs(total)) * 255);
      }
    }
    return { width, height, alpha };
  }

  /** One edge within one row, from `left` to `right`, covering `height` of the row. */
  private edge(row: number, left: number, right: number, height: number): void {
    const { width } = this;
    const clamp = (x: number): number => Math.min(Math.max(x, 0), width);
    const [x0, x1] = [clamp(left), clamp(right)];
    // An edge left of the picture covers the whole row, one right of it nothing.
    const span = right - left;
    if (span <= 0) return this.add(row, x0, height);
    if (left < 0) this.add(row, 0, (height * (Math.min(right, 0) - left)) / span);
    for (let from = x0; from < x1;) {
      const to = Math.min(Math.floor(from) + 1, x1);
      this.add(row, (from + to) / 2, (height * (to - from)) / span);
      from = to;
    }
  }

  private add(row: number, x: number, height: number): void {
    if (x >= this.width) return;
    const col = Math.floor(x);
    const share = 1 - (x - col);
    const at = row * this.width + col;
    this.area[at] = (this.area[at] ?? 0) + height * share;
    if (col + 1 < this.width) this.area[at + 1] = (this.area[at + 1] ?? 0) + height * (1 - share);
  }
}

function bend(from: Point, control: Point, to: Point): number {
  return Math.hypot(from.x - 2 * control.x + to.x, from.y - 2 * control.y + to.y);
}
