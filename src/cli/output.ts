// The output of a command: a process's bytes and our own lines, on stdout and stderr. Exact when piped; made harmless
// when a terminal would read them.

import { once } from 'node:events';
import { TerminalText, visible } from './terminal-text.ts';

export type Sink = 'stdout' | 'stderr';

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
}

export class Output {
  readonly json: boolean;
  /** What a person should know when nobody reads stdout any more. */
  ifNobodyReads: string | undefined;
  private readonly options: OutputOptions;
  private readonly texts: Readonly<Record<Sink, TerminalText>>;

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

  /** Bytes of a process. Resolves when there is room for more. */
  async bytes(sink: Sink, bytes: Uint8Array): Promise<void> {
    const exact = this.options.raw || this.options[sink].isTTY !== true;
    await this.send(sink, exact ? bytes : this.texts[sink].push(bytes));
  }

  line(text: string): Promise<void> {
    return this.send('stdout', `${this.fit('stdout', text)}\n`);
  }

  /** What a person should know although it is not the answer. */
  note(text: string): Promise<void> {
    return this.send('stderr', `${this.fit('stderr', `holdfast: ${text}`)}\n`);
  }

  /** After the "^C" that a terminal shows for the key. */
  async breakLine(): Promise<void> {
    if (this.options.stderr.isTTY === true) await this.send('stderr', '\n');
  }

  /** Gives what was held back; to be called when no more bytes of a process come. */
  async finish(): Promise<void> {
    for (const sink of ['stdout', 'stderr'] as const) await this.send(sink, this.texts[sink].end());
  }

  private fit(sink: Sink, text: string): string {
    return this.options[sink].isTTY === true ? visible(text) : text;
  }

  private async send(sink: Sink, data: string | Uint8Array): Promise<void> {
    if (data.length === 0) return;
    const stream = this.options[sink];
    if (!stream.write(data)) await once(stream, 'drain');
  }
}
