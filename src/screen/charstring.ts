// One glyph of a font with CFF outlines: a small program (a Type 2 charstring) that moves a pen. Whatever is wrong with it
// is a RangeError, and it never runs for long: steps, depth and stack are bounded.

import type { Point } from './outline.ts';

/** Straight to one point, or bent by two to a third. */
type Segment = readonly [Point] | readonly [Point, Point, Point];

export interface Path {
  readonly start: Point;
  readonly segments: Segment[];
}

/** Programs by number. */
interface Programs {
  readonly count: number;
  item(index: number): Buffer | undefined;
}

export interface Subroutines {
  readonly local: Programs | undefined;
  readonly global: Programs;
}

const MAX_DEPTH = 10;
const MAX_STACK = 192;
/** The most complicated glyph that was met takes a thousand. */
const MAX_STEPS = 100_000;

export function runCharstring(program: Buffer, subroutines: Subroutines): readonly Path[] {
  const pen = new Pen();
  new Charstring(pen, subroutines).run(program, 0);
  return pen.paths;
}

class Pen {
  readonly paths: Path[] = [];
  private x = 0;
  private y = 0;

  move(dx: number, dy: number): void {
    this.paths.push({ start: this.by(dx, dy), segments: [] });
  }

  line(dx: number, dy: number): void {
    this.add([this.by(dx, dy)]);
  }

  /** Each point by its distance from the one before. */
  curve([ax = 0, ay = 0, bx = 0, by = 0, cx = 0, cy = 0]: readonly number[]): void {
    this.add([this.by(ax, ay), this.by(bx, by), this.by(cx, cy)]);
  }

  private by(dx: number, dy: number): Point {
    this.x += dx;
    this.y += dy;
    return { x: this.x, y: this.y };
  }

  private add(segment: Segment): void {
    const path = this.paths.at(-1);
    if (path === undefined) throw new RangeError('A glyph draws before it moves.');
    path.segments.push(segment);
  }
}

class Charstring {
  private readonly pen: Pen;
  private readonly subroutines: Subroutines;
  private stack: number[] = [];
  private stems = 0;
  private steps = 0;
  private ended = false;
  /** What each operator does with all of the stack, which is empty afterwards. */
  private readonly drawing: Readonly<Record<number, () => void>> = {
    1: () => this.countStems(),
    3: () => this.countStems(),
    18: () => this.countStems(),
    23: () => this.countStems(),
    21: () => this.pen.move(this.last(2), this.last(1)),
    22: () => this.pen.move(this.last(1), 0),
    4: () => this.pen.move(0, this.last(1)),
    5: () => this.lines(this.stack),
    6: () => this.alternatingLines(true),
    7: () => this.alternatingLines(false),
    8: () => this.curves(this.stack),
    24: () => {
      this.curves(this.stack.slice(0, -2));
      this.lines(this.stack.slice(-2));
    },
    25: () => {
      this.lines(this.stack.slice(0, -6));
      this.curves(this.stack.slice(-6));
    },
    26: () => this.straightCurves(false),
    27: () => this.straightCurves(true),
    30: () => this.alternatingCurves(false),
    31: () => this.alternatingCurves(true),
    14: () => {
      this.ended = true;
    },
  };

  constructor(pen: Pen, subroutines: Subroutines) {
    this.pen = pen;
    this.subroutines = subroutines;
  }

  run(program: Buffer, depth: number): void {
    if (depth > MAX_DEPTH) throw new RangeError('A glyph calls too deep.');
    for (let at = 0; at < program.length && !this.ended;) {
      this.steps += 1;
      if (this.steps > MAX_STEPS) throw new RangeError('A glyph does not come to its end.');
      const code = program.readUInt8(at);
      at += 1;
      if (code >= 32 || code === 28) at = this.push(program, code, at);
      else if (code === 11) return;
      else if (code === 10) this.call(this.subroutines.local, depth);
      else if (code === 29) this.call(this.subroutines.global, depth);
      else if (code === 19 || code === 20) {
        this.countStems();
        this.stack = [];
        at += (this.stems + 7) >> 3;
      } else if (code === 12) {
        this.flex(program.readUInt8(at));
        this.stack = [];
        at += 1;
      } else {
        const draw = this.drawing[code];
        if (draw === undefined) throw new RangeError(`A glyph uses the unknown operator ${code}.`);
        draw();
        this.stack = [];
      }
    }
  }

  private push(program: Buffer, code: number, at: number): number {
    if (this.stack.length >= MAX_STACK) throw new RangeError('A glyph puts too much on its stack.');
    if (code === 28) return this.pushed(program.readInt16BE(at), at + 2);
    if (code < 247) return this.pushed(code - 139, at);
    if (code < 251) return this.pushed((code - 247) * 256 + program.readUInt8(at) + 108, at + 1);
    if (code < 255) return this.pushed((251 - code) * 256 - program.readUInt8(at) - 108, at + 1);
    return this.pushed(program.readInt32BE(at) / 65536, at + 4);
  }

  private pushed(value: number, at: number): number {
    this.stack.push(value);
    return at;
  }

  private call(all: Programs | undefined, depth: number): void {
    // Numbers are counted from the middle, so that the short ones reach further.
    const count = all?.count ?? 0;
    const bias = count < 1240 ? 107 : count < 33_900 ? 1131 : 32_768;
    const program = all?.item((this.stack.pop() ?? Number.NaN) + bias);
    if (program === undefined) throw new RangeError('A glyph calls what is not there.');
    this.run(program, depth + 1);
  }

  private last(from: number): number {
    return this.stack.at(-from) ?? 0;
  }

  private countStems(): void {
    this.stems += this.stack.length >> 1;
  }

  private lines(values: readonly number[]): void {
    for (let at = 0; at + 1 < values.length; at += 2)
      this.pen.line(values[at] ?? 0, values[at + 1] ?? 0);
  }

  private curves(values: readonly number[]): void {
    for (let at = 0; at + 5 < values.length; at += 6) this.pen.curve(values.slice(at, at + 6));
  }

  private alternatingLines(horizontalFirst: boolean): void {
    this.stack.forEach((length, index) => {
      if ((index % 2 === 0) === horizontalFirst) this.pen.line(length, 0);
      else this.pen.line(0, length);
    });
  }

  /** Curves that begin and end in the same direction; an odd first number bends the first one's beginning. */
  private straightCurves(horizontal: boolean): void {
    const odd = this.stack.length % 4 === 1 ? 1 : 0;
    let across = odd === 1 ? (this.stack[0] ?? 0) : 0;
    for (let at = odd; at + 3 < this.stack.length; at += 4) {
      const [a = 0, bx = 0, by = 0, c = 0] = this.stack.slice(at, at + 4);
      this.pen.curve(horizontal ? [a, across, bx, by, c, 0] : [across, a, bx, by, 0, c]);
      across = 0;
    }
  }

  /** Curves that begin in one direction and end in the other, in turns; a fifth number bends the last one's end. */
  private alternatingCurves(horizontalFirst: boolean): void {
    let horizontal = horizontalFirst;
    for (let at = 0; at + 3 < this.stack.length; at += 4) {
      const [a = 0, bx = 0, by = 0, c = 0] = this.stack.slice(at, at + 4);
      const across = this.stack.length - at === 5 ? this.last(1) : 0;
      this.pen.curve(horizontal ? [a, 0, bx, by, across, c] : [0, a, bx, by, c, across]);
      horizontal = !horizontal;
    }
  }

  private flex(code: number): void {
    const v = (index: number): number => this.stack[index] ?? 0;
    if (code === 35) this.curves(this.stack.slice(0, 12));
    else if (code === 34)
      this.curves([v(0), 0, v(1), v(2), v(3), 0, v(4), 0, v(5), -v(2), v(6), 0]);
    else if (code === 36) {
      const back = -(v(1) + v(3) + v(7));
      this.curves([v(0), v(1), v(2), v(3), v(4), 0, v(5), 0, v(6), v(7), v(8), back]);
    } else if (code === 37) {
      const dx = v(0) + v(2) + v(4) + v(6) + v(8);
      const dy = v(1) + v(3) + v(5) + v(7) + v(9);
      const end = Math.abs(dx) > Math.abs(dy) ? [v(10), -dy] : [-dx, v(10)];
      this.curves([...this.stack.slice(0, 10), ...end]);
    } else throw new RangeError(`A glyph uses the unknown operator 12 ${code}.`);
  }
}
