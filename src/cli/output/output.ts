// The output of a command on stdout and stderr: bytes of a process and our own lines. Exact when piped, made safe for a
// terminal.

import { cut } from './table.ts';
import { terminalSize } from './terminal-size.ts';
import { quote, quoteJson, quoteLine, RESET, TerminalText, visible } from './terminal-text.ts';

export type Sink = 'stdout' | 'stderr';

/** How a line of ours looks on a terminal that has colours. */
export type Style = 'bold' | 'dim' | 'red' | 'green';

const SGR: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, green: 32 };
const ERASE_LINE = '\r\x1b[K';
const LF = 10;

/** The part of a stream of Node's that is used here. */
export interface OutputStream extends NodeJS.EventEmitter {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(data: string | Uint8Array): boolean;
}

/** A line for a person. */
export interface StyledLine {
  readonly text: string;
  /** Stands before it, and is ours. */
  readonly lead?: string;
  readonly style?: Style;
  /** It is what a program printed: exact when piped. */
  readonly printed?: true;
  /** The part of it that was looked for. */
  readonly mark?: string | undefined;
}

export interface OutputOptions {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly json: boolean;
  /** Bytes of processes go to a terminal as they are. */
  readonly raw: boolean;
  /** Whether a terminal is given colours and a line that changes. */
  readonly colour?: boolean;
}

export class Output {
  readonly json: boolean;
  /** Called when the reader has gone: a pipe or the terminal was closed. */
  onReaderGone: ((pipeClosed: boolean) => Promise<void>) | undefined;
  private leaving: Promise<void> | undefined;
  private readonly options: OutputOptions;
  private readonly texts: Readonly<Record<Sink, TerminalText>>;
  private liveShown = false;
  /** Nothing stands in the terminal's current line, as far as this command knows. */
  private atLineStart = true;

  constructor(options: OutputOptions) {
    this.options = options;
    this.json = options.json;
    this.texts = { stdout: new TerminalText(), stderr: new TerminalText() };
  }

  /** The width of the terminal that stdout is, or undefined when it is none. */
  get columns(): number | undefined {
    const { stdout } = this.options;
    return stdout.isTTY === true ? terminalSize(stdout).cols : undefined;
  }

  /** stdout and stderr are a terminal that understands more than plain lines. */
  get watched(): boolean {
    const { stdout, stderr, json, colour } = this.options;
    return colour === true && !json && stdout.isTTY === true && stderr.isTTY === true;
  }

  /** The reader has gone. */
  get unread(): boolean {
    return this.leaving !== undefined;
  }

  leave(pipeClosed: boolean): Promise<void> {
    this.leaving ??= this.onReaderGone?.(pipeClosed) ?? Promise.resolve();
    return this.leaving;
  }

  /** Shows progress in the last line of a terminal; it is erased before anything else is printed there. */
  live(text: string): void {
    if (!this.watched || !this.atLineStart) return;
    const width = this.columns ?? 80;
    const line = this.styled('stderr', cut(quote(text), width - 1), 'dim');
    this.options.stderr.write(ERASE_LINE + line);
    this.liveShown = true;
  }

  endLive(): void {
    if (!this.liveShown) return;
    this.liveShown = false;
    this.options.stderr.write(ERASE_LINE);
  }

  /** From here on the colours of a process reach a terminal. */
  passColours(): void {
    for (const text of Object.values(this.texts)) text.colours = true;
  }

  /** Writes bytes of a process. Resolves when the stream takes more. */
  async bytes(sink: Sink, bytes: Uint8Array): Promise<void> {
    const exact = this.options.raw || this.options[sink].isTTY !== true;
    await this.send(sink, exact ? bytes : this.texts[sink].push(bytes));
  }

  line(line: string | StyledLine): Promise<void> {
    if (typeof line === 'string') return this.send('stdout', `${quoteLine(line)}\n`);
    const { text, lead = '', style, printed, mark } = line;
    const fit = printed ? this.fitLine(text) : quoteLine(text);
    const marked = mark === undefined ? fit : this.marked(fit, this.fitLine(mark));
    return this.send('stdout', `${lead}${this.styled('stdout', marked, style)}\n`);
  }

  /** What `--json` prints: one object on one line. */
  object(value: unknown): Promise<void> {
    return this.send('stdout', `${quoteJson(value)}\n`);
  }

  /** A message on stderr, and in a second line what to do about it. */
  note(
    text: string,
    how: { readonly style?: Style; readonly advice?: string } = {},
  ): Promise<void> {
    const advice = how.advice === undefined ? '' : `\n${' '.repeat(10)}${quote(how.advice)}`;
    const lines = `holdfast: ${quote(text)}${advice}`;
    // The output of the process may not have ended its last line.
    const begin = this.options.stderr.isTTY === true && !this.atLineStart ? '\n' : '';
    return this.send(
      'stderr',
      `${this.uncoloured()}${begin}${this.styled('stderr', lines, how.style)}\n`,
    );
  }

  /** After the "^C" that a terminal shows for the key. */
  async breakLine(): Promise<void> {
    if (this.options.stderr.isTTY === true) await this.send('stderr', '\n');
  }

  /** Writes what was held back. Call it after the last bytes of a process. */
  async finish(): Promise<void> {
    // The connection to the keeper must stay open until this is done.
    await this.leaving?.catch(() => undefined);
    for (const sink of ['stdout', 'stderr'] as const) await this.send(sink, this.texts[sink].end());
    await this.send('stdout', this.uncoloured());
  }

  /** The sequence that resets a colour which a process has left. */
  private uncoloured(): string {
    const texts = Object.values(this.texts);
    if (!texts.some((text) => text.coloured)) return '';
    for (const text of texts) text.coloured = false;
    return RESET;
  }

  private marked(line: string, mark: string): string {
    const at = mark === '' ? -1 : line.indexOf(mark);
    if (at < 0) return line;
    const end = at + mark.length;
    return line.slice(0, at) + this.styled('stdout', mark, 'red') + line.slice(end);
  }

  private styled(sink: Sink, text: string, style: Style | undefined): string {
    if (style === undefined || this.options.colour !== true) return text;
    return this.options[sink].isTTY === true ? `\x1b[${SGR[style]}m${text}\x1b[0m` : text;
  }

  /** In a line of a list a carriage return would write over what stands before it. */
  private fitLine(text: string): string {
    return this.columns === undefined ? text : visible(text).replaceAll('\r', '^M');
  }

  private async send(sink: Sink, data: string | Uint8Array): Promise<void> {
    if (data.length === 0) return;
    const stream = this.options[sink];
    if (stream.isTTY === true) {
      this.endLive();
      this.atLineStart = data.at(-1) === '\n' || data.at(-1) === LF;
    }
    if (stream.write(data)) return;
    // After an error `drain` never comes: the error handler exits the program.
    await new Promise<void>((resolve) => void stream.once('drain', resolve));
  }
}
