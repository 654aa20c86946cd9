// Shapes made of closed contours, and how much of each pixel such a shape covers: exactly, by summing up signed areas
// along its edges, so that small letters come out smooth.

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** How much of each pixel is covered, 0 to 255, row by row. */
export interface Coverage {
  readonly width: number;
  readonly height: number;
  readonly alpha: Uint8Array;
}

/** A curve that leaves the picture by far needs no finer steps than one that fills it. */
const MAX_STEPS = 200;

export class Outline {
  private readonly width: number;
  private readonly height: number;
  /** Per pixel, what an edge adds to it and to everything right of it. */
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

  /** From `from` to `to`, bent towards `control`. */
  curve(from: Point, control: Point, to: Point): void {
    const bend = Math.hypot(from.x - 2 * control.x + to.x, from.y - 2 * control.y + to.y);
    const steps = Math.min(MAX_STEPS, Math.max(1, Math.ceil(Math.sqrt(bend * 3))));
    let last = from;
    for (let step = 1; step <= steps; step += 1) {
      const t = step / steps;
      const u = 1 - t;
      const next = {
        x: u * u * from.x + 2 * u * t * control.x + t * t * to.x,
        y: u * u * from.y + 2 * u * t * control.y + t * t * to.y,
      };
      this.line(last, next);
      last = next;
    }
  }

  /** From `from` to `to`, leaving towards `first` and arriving from `second`. */
  cubic(from: Point, [first, second, to]: readonly [Point, Point, Point]): void {
    const bend =
      Math.hypot(from.x - 2 * first.x + second.x, from.y - 2 * first.y + second.y) +
      Math.hypot(first.x - 2 * second.x + to.x, first.y - 2 * second.y + to.y);
    const steps = Math.min(MAX_STEPS, Math.max(1, Math.ceil(Math.sqrt(bend * 3))));
    let last = from;
    for (let step = 1; step <= steps; step += 1) {
      const t = step / steps;
      const [a, b, c, d] = [(1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t * t, t ** 3];
      const next = {
        x: a * from.x + b * first.x + c * second.x + d * to.x,
        y: a * from.y + b * first.y + c * second.y + d * to.y,
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
      let sum = 0;
      for (let at = row * width; at < (row + 1) * width; at += 1) {
        sum += area[at] ?? 0;
        alpha[at] = Math.round(Math.min(1, Math.abs(sum)) * 255);
      }
    }
    return { width, height, alpha };
  }

  /** One edge within one row, from `left` to `right`, `height` of the row high. */
  private edge(row: number, left: number, right: number, height: number): void {
    const { width } = this;
    const clamp = (x: number): number => Math.min(Math.max(x, 0), width);
    const [x0, x1] = [clamp(left), clamp(right)];
    // What lies left of the picture still covers all of the row, what lies right of it nothing.
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
