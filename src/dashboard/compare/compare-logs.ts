// Where the logs of two processes differ first: both are read together, piece by piece, until a line is not the same.

import { askBytes } from '../core/http.ts';
import { piecesOf } from '../model/log-text.ts';
import { LogWindow } from '../model/log-window.ts';
import { diffLines, type DiffRow } from './line-diff.ts';

export interface Target {
  readonly owner: string;
  readonly id: string;
}

export interface LogDifference {
  /** Equal lines before the first difference. */
  readonly same: number;
  readonly isSame: boolean;
  /** From a few lines before it on. */
  readonly rows: readonly DiffRow[];
  /** The logs go on behind the last row. */
  readonly goesOn: boolean;
}

const PIECE_BYTES = 256 * 1024;
const CONTEXT = 3;
const MOST_LINES = 200;

export async function compareLogs(
  left: Target,
  right: Target,
  progress: (same: number) => void,
  signal: AbortSignal,
): Promise<LogDifference> {
  const logs = [new LogLines(left, signal), new LogLines(right, signal)] as const;
  const before: string[] = [];
  for (let same = 0; ; same += 1) {
    const [one, other] = [await logs[0].next(), await logs[1].next()];
    if (one === undefined && other === undefined)
      return { same, isSame: true, rows: [], goesOn: false };
    if (one === other && one !== undefined) {
      before.push(one);
      if (before.length > CONTEXT) before.shift();
      if (same % 5000 === 0) progress(same);
      continue;
    }
    const [lefts, rights] = [await rest(one, logs[0]), await rest(other, logs[1])];
    const rows = diffLines([...before, ...lefts], [...before, ...rights]);
    return { same, isSame: false, rows, goesOn: logs.some((log) => !log.isAtEnd) };
  }
}

async function rest(first: string | undefined, log: LogLines): Promise<string[]> {
  const lines: string[] = [];
  for (let line = first; line !== undefined; line = await log.next()) {
    lines.push(line);
    if (lines.length >= MOST_LINES) break;
  }
  return lines;
}

/** Without colours and other control sequences. */
function plain(text: string): string {
  return piecesOf(text)
    .map((piece) => piece.text)
    .join('');
}

class LogLines {
  isAtEnd = false;
  private readonly target: Target;
  private readonly signal: AbortSignal;
  private window = new LogWindow(0);
  private lines: readonly string[] = [];
  private at = 0;

  constructor(target: Target, signal: AbortSignal) {
    this.target = target;
    this.signal = signal;
  }

  async next(): Promise<string | undefined> {
    while (this.at >= this.lines.length && !this.isAtEnd) await this.load();
    const line = this.lines[this.at];
    this.at += 1;
    return line;
  }

  private async load(): Promise<void> {
    const { owner, id } = this.target;
    const { window } = this;
    const { offset, bytes, totalBytes } = await askBytes(
      `/v1/processes/${encodeURIComponent(id)}/bytes`,
      { query: { owner, offset: window.to, maxBytes: PIECE_BYTES }, signal: this.signal },
    );
    window.append(offset, bytes);
    this.isAtEnd = bytes.length === 0 || window.to >= totalBytes;
    const whole = window.lines.splice(0);
    const last = this.isAtEnd && window.partial ? [window.partial] : [];
    this.lines = [...whole, ...last].map(({ text, missing }) =>
      missing === undefined ? plain(text) : `— ${missing} bytes are no longer stored —`,
    );
    this.at = 0;
  }
}
