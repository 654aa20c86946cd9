// One emulated terminal: bytes and sizes go in, in order; its screen and its answers to queries come out. Runs only in
// worker threads. Sequence numbers are the caller's business.

import { Utf8Stream } from '../../base/bytes/utf8.ts';
import { Answers } from './answers.ts';
import { unicodeProvider } from './character-width.ts';
import { decodeCheckpoint, encodeCheckpoint } from './checkpoint.ts';
import { guard, Links } from './guard.ts';
import { readGrid } from './grid.ts';
import type { Grid } from './grid.ts';
import type { Cursor, CursorShape, Modes, MouseTracking, Skipped } from '../view/snapshot.ts';
import { PlainPrint } from './plain-print.ts';
import { GROUND, openXterm } from './xterm.ts';
import type { Xterm } from './xterm.ts';

const MAX_TITLE = 1024;
const MAX_SAVED_TITLES = 10;
/** xterm.js needs at least two columns; larger sizes than the maximum are not real. */
const MIN_SIZE = { cols: 2, rows: 1 } as const;
const MAX_SIZE = { cols: 1000, rows: 500 } as const;

export interface Look extends Grid {
  readonly cursor: Cursor;
  readonly title: string;
  readonly modes: Modes;
  readonly scrollbackLines: number;
  /** The normal screen while the alternate one is shown, if requested. */
  readonly behind?: Grid & { readonly cursor: Cursor };
}

const MOUSE: Readonly<Record<string, MouseTracking>> = {
  NONE: 'none',
  X10: 'x10',
  VT200: 'vt200',
  DRAG: 'drag',
  ANY: 'any',
};

export class Emulator {
  private readonly xterm: Xterm;
  private readonly answers: Answers;
  private readonly plain: PlainPrint | undefined;
  private readonly links = new Links();
  private readonly scrollback: number;
  private utf8 = new Utf8Stream();
  private title = '';
  private savedTitles: string[] = [];
  /** The last bytes may end in the middle of a character. */
  private partial = false;

  /** `verified: false` takes the paths for an unknown version of xterm.js. */
  constructor(
    cols: number,
    rows: number,
    scrollback: number,
    options: { readonly verified?: boolean } = {},
  ) {
    this.scrollback = scrollback;
    this.xterm = openXterm(...clampSize(cols, rows), scrollback, options);
    const { terminal, inner } = this.xterm;
    terminal.unicode.register(unicodeProvider);
    terminal.unicode.activeVersion = unicodeProvider.version;
    if (this.xterm.verified) {
      guard(inner, terminal, this.links);
      this.plain = new PlainPrint(inner, terminal);
    }
    this.answers = new Answers(this.xterm);
    terminal.onTitleChange((title) => {
      this.title = cleanTitle(title);
    });
    inner._inputHandler._parser.registerCsiHandler({ final: 't' }, ({ params, length }) => {
      // Beyond `length` the array holds values of an earlier sequence.
      const [what, which] = [params[0], length > 1 ? params[1] : 0];
      if (what === 22 && which !== 1) {
        this.savedTitles.push(this.title);
        if (this.savedTitles.length > MAX_SAVED_TITLES) this.savedTitles.shift();
      }
      if (what === 23 && which !== 1) this.title = this.savedTitles.pop() ?? this.title;
      return false;
    });
  }

  /** False if the emulator failed: what came before is shown, the rest of these bytes is not. */
  feed(bytes: Uint8Array): boolean {
    for (let at = 0; at < bytes.length;) {
      if (this.plain && !this.partial) at = this.plain.print(bytes, at);
      const ahead = PlainPrint.nextStretch(bytes, at);
      // Plain but not printed: in the middle of a sequence, or in a mode that needs the parser.
      const end = ahead === at ? bytes.length : ahead;
      if (!this.parse(bytes.subarray(at, end))) return false;
      at = end;
    }
    return true;
  }

  private parse(bytes: Uint8Array): boolean {
    const text = this.utf8.push(bytes);
    this.partial = this.utf8.pending;
    if (text === '') return true;
    const { _inputHandler: input } = this.xterm.inner;
    try {
      input.parse(withoutRepeats(text));
      return true;
    } catch {
      // A bug in xterm.js must not cost this screen, or all of them.
      input._parser.reset();
      return false;
    }
  }

  resize(cols: number, rows: number): void {
    this.xterm.terminal.resize(...clampSize(cols, rows));
  }

  /** The program is in the middle of a synchronized update. */
  get isUpdating(): boolean {
    return this.xterm.inner.coreService.decPrivateModes['synchronizedOutput'] === true;
  }

  /** Answers to queries since the last call. */
  takeAnswers(): string[] {
    return this.answers.take();
  }

  look(scrollback: number, behind = false): Look {
    const { terminal, inner } = this.xterm;
    const { normal, active } = inner._bufferService.buffers;
    return {
      ...readGrid(this.xterm, this.links.all(), scrollback),
      cursor: this.cursor(),
      title: this.title,
      modes: this.modes(),
      scrollbackLines: active === normal ? terminal.buffer.normal.baseY : 0,
      ...(behind &&
        active !== normal && {
          behind: {
            ...readGrid(this.xterm, this.links.all(), 0, normal),
            cursor: this.cursor(normal),
          },
        }),
    };
  }

  /** Undefined in the middle of a sequence or a character, whose state is not in the checkpoint. */
  checkpoint(skipped: readonly Skipped[]): Uint8Array | undefined {
    const { inner, verified } = this.xterm;
    if (!verified || this.partial || inner._inputHandler._parser.currentState !== GROUND)
      return undefined;
    const { title, savedTitles, scrollback } = this;
    const links = this.links.all();
    return encodeCheckpoint(this.xterm, { title, savedTitles, links, scrollback, skipped });
  }

  static restore(
    bytes: Uint8Array,
    options: { readonly verified?: boolean } = {},
  ): { emulator: Emulator; skipped: readonly Skipped[] } {
    const checkpoint = decodeCheckpoint(bytes);
    const { cols, rows, extra } = checkpoint;
    const emulator = new Emulator(cols, rows, extra.scrollback, options);
    if (!emulator.xterm.verified) throw new Error('This xterm.js cannot restore a checkpoint.');
    emulator.title = extra.title;
    emulator.savedTitles = [...extra.savedTitles];
    emulator.links.restore(extra.links);
    checkpoint.into(emulator.xterm);
    return { emulator, skipped: extra.skipped };
  }

  dispose(): void {
    this.xterm.terminal.dispose();
  }

  private cursor({ x, y } = this.xterm.inner._bufferService.buffers.active): Cursor {
    const { inner, terminal } = this.xterm;
    const { cursorStyle, cursorBlink } = inner.coreService.decPrivateModes;
    return {
      row: y,
      col: Math.min(x, terminal.cols),
      visible: !inner.coreService.isCursorHidden,
      shape: (cursorStyle as CursorShape | undefined) ?? 'block',
      blink: cursorBlink === true,
    };
  }

  private modes(): Modes {
    const { inner } = this.xterm;
    const { decPrivateModes: dec, modes } = inner.coreService;
    const { activeProtocol, activeEncoding } = inner.coreMouseService;
    const { active, alt } = inner._bufferService.buffers;
    return {
      applicationCursor: dec['applicationCursorKeys'] === true,
      applicationKeypad: dec['applicationKeypad'] === true,
      bracketedPaste: dec['bracketedPasteMode'] === true,
      mouse: MOUSE[activeProtocol] ?? 'none',
      mouseSgr: activeEncoding.startsWith('SGR'),
      focusReports: dec['sendFocus'] === true,
      insert: modes['insertMode'] === true,
      origin: dec['origin'] === true,
      wraparound: dec['wraparound'] === true,
      reverseWraparound: dec['reverseWraparound'] === true,
      alternateScreen: active === alt,
      synchronizedOutput: dec['synchronizedOutput'] === true,
    };
  }
}

/** A reset (ESC c) takes as long as printing a screen; repeating it changes nothing. */
function withoutRepeats(text: string): string {
  // oxlint-disable-next-line no-control-regex -- that is what it looks for
  return text.includes('\x1bc\x1bc') ? text.replace(/(?:\x1bc){2,}/g, '\x1bc') : text;
}

function clampSize(cols: number, rows: number): [number, number] {
  return [
    Math.min(Math.max(cols, MIN_SIZE.cols), MAX_SIZE.cols),
    Math.min(Math.max(rows, MIN_SIZE.rows), MAX_SIZE.rows),
  ];
}

/** A title is shown in lists and tabs: no control characters, and none that change the text direction. */
function cleanTitle(title: string): string {
  return title.slice(0, MAX_TITLE).replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '');
}
