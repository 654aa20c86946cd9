// Reads the log of one process into a window: around a place that was asked for, further up and down as one scrolls, and at
// its end as it grows.

import { signal } from '@preact/signals';
import { LogWindow, type LogLine } from '../model/log-window.ts';
import { ask, askBytes, Problem, type Bytes } from './http.ts';
import { problemOf, subscribe } from './watch.ts';

const PIECE_BYTES = 256 * 1024;
const FIRST_BYTES = 128 * 1024;
const MOST_HITS = 1000;
const AGAIN_MS = 1000;

export interface Hit {
  readonly offset: number;
  readonly line: string;
}

interface Found {
  readonly hits: readonly Hit[];
  readonly truncated: boolean;
  readonly resumeFrom: number;
}

export class LogReader {
  /** With the last one, which may not be whole. */
  readonly lines = signal<readonly LogLine[]>([]);
  /** The view stays at the end. */
  readonly follows = signal(true);
  readonly total = signal(0);
  readonly problem = signal<Problem | undefined>(undefined);
  readonly hits = signal<readonly Hit[]>([]);
  readonly hitAt = signal(-1);
  readonly isSearching = signal(false);
  /** Lines that were added above what is shown, less those that were cut there. */
  shift = 0;
  /** The line that is to be shown next. */
  target: number | undefined;
  /** The line that a link led to. */
  marked: number | undefined;
  private readonly owner: string;
  private readonly id: string;
  private window = new LogWindow(0);
  private stop: (() => void) | undefined;
  private loading = false;
  private isDrawn = true;
  private closed = false;

  constructor(owner: string, id: string) {
    this.owner = owner;
    this.id = id;
  }

  get range(): { readonly from: number; readonly to: number } {
    return this.window;
  }

  /** The window reaches the end of the output, and grows with it. */
  get atEnd(): boolean {
    return this.stop !== undefined;
  }

  /** At its end, or at a place. */
  open(offset?: number): () => void {
    if (offset === undefined) this.toEnd();
    else this.jump(offset);
    return () => {
      this.closed = true;
      this.unfollow();
    };
  }

  toEnd(): void {
    this.follows.value = true;
    if (this.atEnd) this.draw();
    else
      void this.load(
        () => this.loadEnd(),
        () => this.follows.value && this.toEnd(),
      );
  }

  jump(offset: number): void {
    this.follows.value = false;
    void this.load(async () => {
      if (this.atEnd && offset >= this.window.from) this.show(offset);
      else {
        this.unfollow();
        const begin = Math.max(0, offset - PIECE_BYTES / 2);
        const bytes = await this.bytes(begin, PIECE_BYTES);
        this.window = startedAt(bytes, begin);
        this.show(offset);
      }
    });
  }

  loadBefore(): void {
    const { from } = this.window;
    if (from === 0 || this.loading) return;
    void this.load(async () => {
      const begin = Math.max(0, from - PIECE_BYTES);
      const { offset, bytes } = await this.bytes(begin, from - begin);
      if (offset >= from) {
        this.window.lines.unshift({ offset: 0, text: '', missing: from });
        this.window.from = 0;
        this.shift += 1;
      } else
        this.shift += this.window.prepend(offset, bytes.subarray(0, from - offset), begin === 0);
      if (this.window.cutTail()) this.unfollow();
      this.draw();
    });
  }

  loadAfter(): void {
    if (this.atEnd || this.loading) return;
    void this.load(async () => {
      const { to } = this.window;
      const { offset, bytes, totalBytes } = await this.bytes(to, PIECE_BYTES);
      this.window.append(offset, bytes);
      this.shift -= this.window.cutHead();
      if (this.window.to >= totalBytes) this.follow();
      this.draw();
    });
  }

  async search(text: string): Promise<void> {
    this.hits.value = [];
    this.hitAt.value = -1;
    if (text === '') {
      this.draw();
      return;
    }
    this.isSearching.value = true;
    try {
      const { hits } = await ask<Found>('GET', this.path('/search'), {
        query: {
          owner: this.owner,
          pattern: text,
          kind: 'text',
          ignoreCase: true,
          limit: MOST_HITS,
        },
      });
      this.hits.value = hits;
      if (hits.length > 0) this.toHit(0);
    } catch (error) {
      this.problem.value = error as Problem;
    } finally {
      this.isSearching.value = false;
    }
  }

  /** Round and round. */
  toHit(number: number): void {
    const hits = this.hits.value;
    if (hits.length === 0) return;
    const at = (number + hits.length) % hits.length;
    this.hitAt.value = at;
    this.jump(hits[at]?.offset ?? 0);
  }

  isHit(line: LogLine): boolean {
    const offset = this.hits.value[this.hitAt.value]?.offset ?? this.marked;
    if (offset === undefined) return false;
    const lines = this.lines.value;
    return lines[this.indexOf(offset)] === line;
  }

  /** What was asked for is shown. */
  placed(): void {
    this.shift = 0;
    this.target = undefined;
  }

  private indexOf(offset: number): number {
    const { partial } = this.window;
    if (partial && offset >= partial.offset) return this.window.lines.length;
    return this.window.indexOf(offset);
  }

  private async loadEnd(): Promise<void> {
    const { bytes: counts } = await ask<{ bytes: { total: number } }>('GET', this.path(''), {
      query: { owner: this.owner },
    });
    const begin = Math.max(0, counts.total - FIRST_BYTES);
    if (counts.total === 0) this.window = new LogWindow(0);
    else this.window = startedAt(await this.bytes(begin, FIRST_BYTES), begin);
    this.follow();
    this.draw();
  }

  private follow(): void {
    if (this.closed || this.stop) return;
    this.stop = subscribe({
      begin: () => ({ type: 'log', owner: this.owner, id: this.id, offset: this.window.to }),
      onBytes: (offset, bytes) => {
        this.window.append(offset, bytes);
        if (this.follows.value) this.shift -= this.window.cutHead();
        this.draw();
      },
      onMessage: (message) => {
        if (message.type === 'problem') this.problem.value = problemOf(message);
        if (message.type === 'end') this.total.value = Number(message['totalBytes']);
      },
    });
  }

  private unfollow(): void {
    this.stop?.();
    this.stop = undefined;
  }

  private show(offset: number): void {
    this.target = this.indexOf(offset);
    this.draw();
  }

  private async bytes(offset: number, maxBytes: number): Promise<Bytes> {
    const query = { owner: this.owner, offset, maxBytes: Math.max(1, maxBytes) };
    const found = await askBytes(this.path('/bytes'), { query });
    this.total.value = found.totalBytes;
    return found;
  }

  private path(rest: string): string {
    return `/v1/processes/${encodeURIComponent(this.id)}${rest}`;
  }

  /** One load at a time: each begins where the one before ended. */
  /** `again`: called a while later if the server cannot be reached. */
  private async load(act: () => Promise<void>, again?: () => void): Promise<void> {
    if (this.loading) return;
    this.loading = true;
    try {
      await act();
      this.problem.value = undefined;
    } catch (error) {
      const problem = error as Problem;
      this.problem.value = problem;
      if (again && problem.code === 'unreachable')
        setTimeout(() => this.closed || again(), AGAIN_MS);
    } finally {
      this.loading = false;
    }
  }

  /** Once per frame, however much comes. */
  private draw(): void {
    if (!this.isDrawn) return;
    this.isDrawn = false;
    requestAnimationFrame(() => {
      this.isDrawn = true;
      const { lines, partial } = this.window;
      this.lines.value = partial ? [...lines, partial] : [...lines];
    });
  }
}

/** A window that begins with a whole line. */
function startedAt({ offset, bytes }: Bytes, asked: number): LogWindow {
  // Where something is missing, what follows is taken as it is.
  const begin = offset === 0 || offset > asked ? 0 : bytes.indexOf(10) + 1;
  const window = new LogWindow(offset + begin);
  window.append(offset + begin, bytes.subarray(begin));
  return window;
}
