// One terminal, emulated: bytes and sizes go in, in order; what it shows, and what it answered, come out. Runs in the
// emulator's worker and nowhere else. It knows no sequence numbers; whoever feeds it does.

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
/** The emulator cannot do with fewer columns, and more than this is nobody's screen. */
const LEAST = { cols: 2, rows: 1 } as const;
const MOST = { cols: 1000, rows: 500 } as const;

export interface Look extends Grid {
  readonly cursor: Cursor;
  readonly title: string;
  readonly modes: Modes;
  readonly scrollbackLines: number;
  /** The normal screen while the alternate one is shown, when it was asked for. */
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
  private readonly plain: PlainPrint;
  private readonly links = new Links();
  private readonly scrollback: number;
  private utf8 = new Utf8Stream();
  private title = '';
  private savedTitles: string[] = [];
  /** A character may be incomplete at the end of what was fed. */
  private partial = false;

  constructor(cols: number, rows: number, scrollback: number) {
    this.scrollback = scrollback;
    this.xterm = openXterm(...within(cols, rows), scrollback);
    const { terminal, inner } = this.xterm;
    terminal.unicode.register(unicodeProvider);
    terminal.unicode.activeVersion = unicodeProvider.version;
    guard(inner, terminal, this.links);
    this.plain = new PlainPrint(inner, terminal);
    this.answers = new Answers(this.xterm);
    terminal.onTitleChange((title) => {
      this.title = cleanTitle(title);
    });
    inner._inputHandler._parser.registerCsiHandler({ final: 't' }, ({ params, length }) => {
      // Behind its length it holds what an earlier sequence left there.
      const [what, which] = [params[0], length > 1 ? params[1] : 0];
      if (what === 22 && which !== 1) {
        this.savedTitles.push(this.title);
        if (this.savedTitles.length > MAX_SAVED_TITLES) this.savedTitles.shift();
      }
      if (what === 23 && which !== 1) this.title = this.savedTitles.pop() ?? this.title;
      return false;
    });
  }

  /** False when the emulator failed over them: what came before that is shown, the rest of these bytes is not. */
  feed(bytes: Uint8Array): boolean {
    for (let at = 0; at < bytes.length;) {
      if (!this.partial) at = this.plain.take(bytes, at);
      const ahead = PlainPrint.ahead(bytes, at);
      // Plain, and yet not taken: inside of a sequence, or in a mode in which nothing is.
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
      // A mistake of the emulator is no reason to lose the screen, or everybody's.
      input._parser.reset();
      return false;
    }
  }

  resize(cols: number, rows: number): void {
    this.xterm.terminal.resize(...within(cols, rows));
  }

  /** The program is in the middle of an update that it wants shown as one. */
  get isUpdating(): boolean {
    return this.xterm.inner.coreService.decPrivateModes['synchronizedOutput'] === true;
  }

  /** What a program asked for since this was last called. */
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

  /** Undefined between the bytes of a sequence or of a character: there, nothing but the bytes themselves say it all. */
  checkpoint(skipped: readonly Skipped[]): Uint8Array | undefined {
    if (this.partial || this.xterm.inner._inputHandler._parser.currentState !== GROUND)
      return undefined;
    const { title, savedTitles, scrollback } = this;
    const links = this.links.all();
    return encodeCheckpoint(this.xterm, { title, savedTitles, links, scrollback, skipped });
  }

  static restore(bytes: Uint8Array): { emulator: Emulator; skipped: readonly Skipped[] } {
    const checkpoint = decodeCheckpoint(bytes);
    const { cols, rows, extra } = checkpoint;
    const emulator = new Emulator(cols, rows, extra.scrollback);
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

/** A reset (ESC c) takes the emulator as long as printing a screen; a second one right behind it changes nothing. */
function withoutRepeats(text: string): string {
  // oxlint-disable-next-line no-control-regex -- that is what it looks for
  return text.includes('\x1bc\x1bc') ? text.replace(/(?:\x1bc){2,}/g, '\x1bc') : text;
}

function within(cols: number, rows: number): [number, number] {
  return [
    Math.min(Math.max(cols, LEAST.cols), MOST.cols),
    Math.min(Math.max(rows, LEAST.rows), MOST.rows),
  ];
}

/** A title is shown in lists and tabs: no controls, and nothing that turns the direction of the text around it. */
function cleanTitle(title: string): string {
  return title.slice(0, MAX_TITLE).replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '');
}
