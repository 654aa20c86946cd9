// Limits that keep a few hostile bytes from costing the emulator minutes or gigabytes. Within the limits the screen is
// what any terminal of this size would show. The worker's time budget is the last defence.

import type { FunctionId, Inner, Line, StringCollector } from './xterm.ts';

/** Longer titles, links and colours are not real. xterm.js itself would store 10,000,000 characters. */
const MAX_STRING = 65_536;
/** No script has more combining marks on one character. */
const MAX_CLUSTER = 32;
const MAX_LINKS = 4096;
const MAX_LINK = 2048;

/** Sequences with a count that xterm.js takes literally; more than a line or a screen changes nothing. */
const COUNTED_BY_COLUMNS: readonly FunctionId[] = [
  { final: '@' },
  { final: 'I' },
  { final: 'P' },
  { final: 'X' },
  { final: 'Z' },
  { final: 'b' },
  { intermediates: ' ', final: '@' },
  { intermediates: ' ', final: 'A' },
  { intermediates: "'", final: '}' },
  { intermediates: "'", final: '~' },
];
const COUNTED_BY_ROWS: readonly FunctionId[] = [
  { final: 'L' },
  { final: 'M' },
  { final: 'S' },
  { final: 'T' },
];

export interface Size {
  readonly cols: number;
  readonly rows: number;
}

export function guard(inner: Inner, size: Size, links: Links): void {
  const parser = inner._inputHandler._parser;
  for (const id of COUNTED_BY_COLUMNS) clamp(id, () => size.cols);
  for (const id of COUNTED_BY_ROWS) clamp(id, () => size.rows);
  for (const handlers of [parser._oscParser._handlers, parser._dcsParser._handlers]) {
    for (const collectors of Object.values(handlers)) collectors.forEach(limitString);
  }
  limitClusters(inner._bufferService.buffers.active.lines.get(0));
  eraseToLastColumn(inner, size, false);
  eraseToLastColumn(inner, size, true);
  // The link service of xterm.js has a marker per link that every scrolled line updates.
  inner._oscLinkService.registerLink = ({ uri }) => links.number(uri);
  inner._oscLinkService.addLineToLink = () => undefined;

  function clamp(id: FunctionId, most: () => number): void {
    // Runs before the handler of xterm.js; returning false lets that one continue with the reduced count.
    parser.registerCsiHandler(id, ({ params }) => {
      const [count = 0] = params;
      if (count > most()) params[0] = most();
      return false;
    });
  }
}

/**
 * Erasing up to the cursor in the last column. xterm.js counts the line below from the top of the scrollback: it marks
 * a wrong line, or throws if there is none. So this is done here.
 */
function eraseToLastColumn(inner: Inner, size: Size, isSelective: boolean): void {
  const input = inner._inputHandler;
  const id: FunctionId = isSelective ? { prefix: '?', final: 'J' } : { final: 'J' };
  input._parser.registerCsiHandler(id, ({ params }) => {
    const { active } = inner._bufferService.buffers;
    if (params[0] !== 1 || active.x + 1 < size.cols) return false;
    input._eraseInBufferLine(active.y, 0, size.cols, true, isSelective);
    for (let row = active.y - 1; row >= 0; row -= 1) input._resetBufferLine(row, isSelective);
    if (active.y + 1 < size.rows) active.lines.get(active.ybase + active.y + 1).isWrapped = false;
    return true;
  });
}

/** Targets of hyperlinks, by the number that cells carry. 0 is none. */
export class Links {
  private readonly numbers = new Map<string, number>();

  number(uri: string): number {
    const known = this.numbers.get(uri);
    if (known !== undefined) return known;
    if (uri.length > MAX_LINK || this.numbers.size >= MAX_LINKS) return 0;
    this.numbers.set(uri, this.numbers.size + 1);
    return this.numbers.size;
  }

  all(): string[] {
    return [...this.numbers.keys()];
  }

  restore(all: readonly string[]): void {
    this.numbers.clear();
    for (const uri of all) this.numbers.set(uri, this.numbers.size + 1);
  }
}

function limitString(collector: StringCollector): void {
  const put = collector.put.bind(collector);
  collector.put = (data, start, end) => {
    if (collector._data.length + end - start <= MAX_STRING) return put(data, start, end);
    collector._data = '';
    collector._hitLimit = true;
  };
}

/** The constructor of lines is not reachable, so their prototype is changed once, through any line. */
const limited = new WeakSet<object>();
function limitClusters(any: Line): void {
  const kind = Object.getPrototypeOf(any) as Line;
  if (limited.has(kind)) return;
  limited.add(kind);
  // oxlint-disable-next-line typescript/unbound-method -- it is called on the line it belongs to
  const add = kind.addCodepointToCell;
  kind.addCodepointToCell = function limitedAdd(this: Line, index, codePoint, width) {
    if ((this._combined[index]?.length ?? 0) < MAX_CLUSTER || !isCombined(this, index))
      add.call(this, index, codePoint, width);
  };
}

function isCombined(line: Line, index: number): boolean {
  return ((line._data[index * 3] ?? 0) & 0x200000) !== 0;
}
