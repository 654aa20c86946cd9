// A terminal on the page: what it shows follows the process event by event; what is typed goes there while this page holds
// the keyboard. Watching changes nothing of it: not its size, not its input.

import { signal } from '@preact/signals';
import type { Terminal } from '@xterm/xterm';
import { Problem } from '../core/http.ts';
import { connection, problemOf, subscribe, tell, type Message } from '../core/watch.ts';
import {
  openTerminal,
  themeOf,
  withoutRepeatedResets,
  type TerminalSize,
} from './guarded-terminal.ts';

const RENEW_MS = 3000;
/** The costliest sequences take 10 µs a byte. */
const SLICE_BYTES = 2048;
const TOUCH = matchMedia('(pointer: coarse)');
/** Of the width of a cell to the size of the font, for the bundled face and those like it. */
const CELL_RATIO = 0.602;
const FONT_PX = { least: 5, most: 14 } as const;
const PADDING_PX = 24;
const encoder = new TextEncoder();

export class Screen {
  readonly size = signal<TerminalSize>({ cols: 80, rows: 24 });
  readonly isHeld = signal(false);
  readonly problem = signal<Problem | undefined>(undefined);
  /** The keyboard is being given back. */
  private isLeaving = false;
  /** Who holds the keyboard, when we were refused. */
  readonly heldBy = signal<string | undefined>(undefined);
  readonly skippedBytes = signal(0);
  /** Something was drawn: before that, nothing is known of what it shows. */
  readonly isPainted = signal(false);
  /** The event whose screen is shown instead of the present one. */
  readonly past = signal<number | undefined>(undefined);
  private readonly owner: string;
  private readonly id: string;
  private readonly terminal: Terminal;
  private seq: number | undefined;
  private stop: (() => void) | undefined;
  private timer: ReturnType<typeof setInterval> | undefined;
  private shown: HTMLElement | undefined;
  /** What is drawn is drawn in the order in which it came: a picture of the whole screen not before the output ahead of it. */
  private turn: Promise<void> = Promise.resolve();

  constructor(owner: string, id: string, isDark: boolean) {
    this.owner = owner;
    this.id = id;
    this.terminal = openTerminal(this.size.peek(), isDark);
  }

  open(element: HTMLElement): () => void {
    const { terminal } = this;
    this.shown = element;
    terminal.open(element);
    terminal.textarea?.setAttribute('aria-label', 'Terminal');
    // While it is only watched, letters are keys of the page.
    terminal.textarea?.addEventListener('focus', () => {
      if (!this.isHeld.value) terminal.textarea?.blur();
    });
    terminal.attachCustomKeyEventHandler((event) => this.passes(event));
    terminal.onData((data) => this.type(data));
    const observer = new ResizeObserver(() => this.fit());
    observer.observe(element);
    this.stop = this.follow();
    const lost = connection.subscribe(({ state }) => {
      if (state === 'lost') this.released();
    });
    return () => {
      lost();
      observer.disconnect();
      void this.release();
      this.stop?.();
      terminal.dispose();
    };
  }

  setTheme(isDark: boolean): void {
    this.terminal.options.theme = themeOf(isDark);
  }

  /** Takes the keyboard. `steal`: also from another person. */
  async hold(steal = false): Promise<void> {
    this.toLive();
    try {
      await this.say({ type: 'hold', ...(steal && { steal }) });
    } catch (error) {
      const problem = error as Problem;
      if (problem.code === 'keyboard_held') this.heldBy.value = problem.message;
      else this.problem.value = problem;
      this.released();
      return;
    }
    this.heldBy.value = undefined;
    this.problem.value = undefined;
    if (this.isHeld.value) return;
    this.isHeld.value = true;
    this.terminal.options.disableStdin = false;
    // On a phone the field of the key bar is typed into: it suits a keyboard on glass, and any language.
    if (!TOUCH.matches) this.terminal.focus();
    this.timer = setInterval(() => void this.renew(), RENEW_MS);
  }

  async release(): Promise<void> {
    if (!this.isHeld.value || this.isLeaving) return;
    // Nothing more is typed; "watching" is shown when agents can type again.
    this.isLeaving = true;
    this.stopTyping();
    await this.say({ type: 'release' }).catch(() => undefined);
    this.released();
  }

  /** Shows the screen as it was after an event. The program goes on meanwhile; its output does not move what is shown. */
  async showAt(at: number): Promise<void> {
    await this.release();
    this.stop?.();
    this.stop = undefined;
    this.past.value = at;
    try {
      const painted = await this.say({ type: 'paint', at });
      // Another moment was asked for meanwhile.
      await this.inTurn(() => (this.past.value === at ? this.paint(painted) : undefined));
      this.problem.value = undefined;
    } catch (error) {
      this.problem.value = error as Problem;
    }
  }

  toLive(): void {
    if (this.past.value === undefined) return;
    this.past.value = undefined;
    this.seq = undefined;
    this.stop ??= this.follow();
  }

  /** What it shows, as text. */
  text(): string {
    const { active } = this.terminal.buffer;
    const rows = Array.from({ length: this.terminal.rows }, (_each, row) =>
      active.getLine(active.baseY + row)?.translateToString(true),
    );
    return rows.join('\n').trimEnd();
  }

  /** A page in the background, or one whose process ended, lets go: the lease ends by itself. */
  private async renew(): Promise<void> {
    if (document.visibilityState === 'visible') await this.hold();
    else await this.release();
  }

  private released(): void {
    this.stopTyping();
    this.isLeaving = false;
    this.isHeld.value = false;
  }

  private stopTyping(): void {
    clearInterval(this.timer);
    this.terminal.options.disableStdin = true;
    this.terminal.blur();
  }

  private passes(event: KeyboardEvent): boolean {
    if (!(event.ctrlKey && event.key === ']')) return true;
    if (event.type === 'keydown') void this.release();
    event.preventDefault();
    return false;
  }

  /** An arrow key, as the program wants it now. */
  arrow(final: 'A' | 'B' | 'C' | 'D'): void {
    const isApplication = this.terminal.modes.applicationCursorKeysMode;
    this.type(`\x1b${isApplication ? 'O' : '['}${final}`);
  }

  type(data: string): void {
    if (!this.isHeld.value || this.isLeaving) return;
    this.say({ type: 'type', data }).catch((error: unknown) => {
      this.problem.value = error as Problem;
    });
  }

  private say(message: Record<string, unknown>): Promise<Message> {
    return tell({ ...message, owner: this.owner, id: this.id });
  }

  private follow(): () => void {
    const { owner, id } = this;
    return subscribe({
      begin: () => ({
        type: 'screen',
        owner,
        id,
        ...(this.seq !== undefined && { after: this.seq }),
      }),
      onMessage: (message) => this.receive(message),
      onBytes: (seq, bytes) => {
        if (this.seq !== undefined && seq <= this.seq) return undefined;
        this.seq = seq;
        return this.inTurn(() => this.write(bytes));
      },
    });
  }

  private inTurn(draw: () => Promise<void> | void): Promise<void> {
    this.turn = this.turn.then(draw);
    return this.turn;
  }

  /** In slices: between two of them xterm.js gives way when 12 ms are over, so that hostile output holds up no key. */
  private write(output: Uint8Array): Promise<void> {
    const { terminal } = this;
    const bytes = withoutRepeatedResets(output);
    const last = Math.floor(Math.max(0, bytes.length - 1) / SLICE_BYTES) * SLICE_BYTES;
    for (let at = 0; at < last; at += SLICE_BYTES)
      terminal.write(bytes.subarray(at, at + SLICE_BYTES));
    return new Promise((resolve) => {
      terminal.write(bytes.subarray(last), resolve);
    });
  }

  private receive(message: Message): void {
    if (message.type === 'painted') {
      this.seq = Number(message['seq']);
      this.skippedBytes.value += Number(message['skippedBytes']);
      void this.inTurn(() => this.paint(message));
    }
    if (message.type === 'event') {
      const { kind, seq, body } = message['event'] as { kind: string; seq: number; body: unknown };
      this.seq = Math.max(this.seq ?? 0, seq);
      if (kind === 'resize') void this.inTurn(() => this.resize(body as TerminalSize));
    }
    if (message.type === 'end') this.released();
    if (message.type === 'problem') this.problem.value = problemOf(message);
  }

  private paint(message: Message): Promise<void> {
    this.terminal.reset();
    this.resize(message['size'] as TerminalSize);
    this.isPainted.value = true;
    return this.write(encoder.encode(String(message['screen'])));
  }

  private resize(size: TerminalSize): void {
    this.size.value = size;
    this.terminal.resize(size.cols, size.rows);
    this.fit();
  }

  /** The text is made smaller where the window is; the terminal keeps its size. */
  private fit(): void {
    const width = (this.shown?.parentElement?.clientWidth ?? 0) - PADDING_PX;
    const fitting = Math.floor((width / this.size.value.cols / CELL_RATIO) * 2) / 2;
    const fontSize = Math.max(FONT_PX.least, Math.min(FONT_PX.most, fitting));
    if (width > 0 && this.terminal.options.fontSize !== fontSize)
      this.terminal.options.fontSize = fontSize;
  }
}
