// The output of a command: a process's bytes and our own lines, on stdout and stderr. Exact when piped; made harmless
// when a terminal would read them.

import { once } from 'node:events';
import { cut } from './table.ts';
import { TerminalText, visible } from './terminal-text.ts';

export type Sink = 'stdout' | 'stderr';

/** How a line of ours looks on a terminal that has colours. */
export type Style = 'bold' | 'dim' | 'red' | 'green';

const SGR: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, green: 32 };
const ERASE_LINE = '\r\x1b[K';
const LF = 10;

/** The part of a stream of Node's that is used here. */
interface OutputStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(data: string | Uint8Array): boolean;
}

export interface OutputOptions {
  readonly stdout: OutputStream & NodeJS.EventEmitter;
  readonly stderr: OutputStream & NodeJS.EventEmitter;
  readonly json: boolean;
  /** Bytes of processes go to a terminal as they are. */
  readonly raw: boolean;
  /** Whether a terminal is given colours and a line that changes. */
  readonly colour?: boolean;
}

export class Output {
  readonly json: boolean;
  /** What a person should know when nobody reads stdout any more. */
  ifNobodyReads: string | undefined;
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
    return stdout.isTTY === true ? (stdout.columns ?? 80) : undefined;
  }

  /** A person is looking, at a terminal that takes more than plain lines. */
  get watched(): boolean {
    const { stdout, stderr, json, colour } = this.options;
    return colour === true && !json && stdout.isTTY === true && stderr.isTTY === true;
  }

  /** What is going on, in the last line of a terminal: gone before anything else is printed there. */
  live(text: string): void {
    if (!this.watched || !this.atLineStart) return;
    const width = this.columns ?? 80;
    const line = this.styled('stderr', cut(visible(text), width - 1), 'dim');
    this.options.stderr.write(ERASE_LINE + line);
    this.liveShown = true;
  }

  endLive(): void {
    if (!this.liveShown) return;
    this.liveShown = false;
    this.options.stderr.write(ERASE_LINE);
  }

  /** Bytes of a process. Resolves when there is room for more. */
  async bytes(sink: Sink, bytes: Uint8Array): Promise<void> {
    const exact = this.options.raw || this.options[sink].isTTY !== true;
    await this.send(sink, exact ? bytes : this.texts[sink].push(bytes));
  }

  line(text: string, style?: Style): Promise<void> {
    return this.send('stdout', `${this.styled('stdout', this.fit('stdout', text), style)}\n`);
  }

  /** What a person should know although it is not the answer. */
  note(text: string, style?: Style): Promise<void> {
    const line = this.fit('stderr', `holdfast: ${text}`);
    return this.send('stderr', `${this.styled('stderr', line, style)}\n`);
  }

  /** After the "^C" that a terminal shows for the key. */
  async breakLine(): Promise<void> {
    if (this.options.stderr.isTTY === true) await this.send('stderr', '\n');
  }

  /** Gives what was held back; to be called when no more bytes of a process come. */
  async finish(): Promise<void> {
    for (const sink of ['stdout', 'stderr'] as const) await this.send(sink, this.texts[sink].end());
  }

  private styled(sink: Sink, text: string, style: Style | undefined): string {
    if (style === undefined || this.options.colour !== true) return text;
    return this.options[sink].isTTY === true ? `\x1b[${SGR[style]}m${text}\x1b[0m` : text;
  }

  private fit(sink: Sink, text: string): string {
    return this.options[sink].isTTY === true ? visible(text) : text;
  }

  private async send(sink: Sink, data: string | Uint8Array): Promise<void> {
    if (data.length === 0) return;
    const stream = this.options[sink];
    if (stream.isTTY === true) {
      this.endLive();
      this.atLineStart = data.at(-1) === '\n' || data.at(-1) === LF;
    }
    if (!stream.write(data)) await once(stream, 'drain');
  }
}
