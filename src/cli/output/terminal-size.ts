// The size of the terminal that stdout is. A terminal without a window (a serial console, some containers and CI
// machines) says 0; it gets the usual size. Larger ones than a process can have are cut.

import type { TerminalSize } from '../../protocol/process.ts';

const USUAL = { cols: 80, rows: 24 };
const MOST = 1000;

interface Sized {
  readonly columns?: number;
  readonly rows?: number;
}

export function terminalSize({ columns, rows }: Sized): TerminalSize {
  return {
    cols: Math.min(columns || USUAL.cols, MOST),
    rows: Math.min(rows || USUAL.rows, MOST),
  };
}
