// A journal as an asciicast, version 2 or 3: a JSON header, then one line per event. Input is left out unless
// requested.

import { Utf8Stream } from '../../base/bytes/utf8.ts';
import type { ProcessEvent } from '../../protocol/event.ts';
import type { TerminalSize } from '../../protocol/process.ts';
import type { EventSource } from '../emulator/replica.ts';
import { hexOf } from '../picture/theme.ts';
import type { Theme } from '../picture/theme.ts';
import { Timeline } from './timeline.ts';
import type { Pace } from './timeline.ts';

export interface AsciicastOptions extends Pace {
  readonly version: 2 | 3;
  /** The size at the beginning of the recording. */
  readonly size: TerminalSize;
  /** The first and the last event; by default all. */
  readonly from?: number;
  readonly to?: number;
  /** Bytes that paint the screen before `from`, for a recording that begins in the middle. */
  readonly before?: string;
  /** Seconds since 1970. */
  readonly timestamp?: number;
  readonly title?: string;
  readonly command?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly theme?: Theme;
  readonly includeInput?: boolean;
  /** The label of a mark, if a note in the journal is one. */
  readonly markOf?: (note: Readonly<Record<string, unknown>>) => string | undefined;
  readonly onProgress?: (seq: number) => void;
}

/** Whole lines, each with a line feed. */
export async function* asciicast(
  source: EventSource,
  options: AsciicastOptions,
): AsyncGenerator<string> {
  const writer = new CastWriter(options);
  yield writer.header();
  if (options.before !== undefined) yield writer.line(0, 'o', options.before);
  for await (const page of source.read((options.from ?? 1) - 1, options.to)) {
    let lines = '';
    for (const event of page) lines += writer.event(event);
    if (lines !== '') yield lines;
    options.onProgress?.(page.at(-1)?.seq ?? 0);
  }
  const rest = writer.end();
  if (rest !== '') yield rest;
}

class CastWriter {
  private readonly options: AsciicastOptions;
  private readonly timeline: Timeline;
  private readonly output = new Utf8Stream();
  private readonly input = new Utf8Stream();
  private lastMs = 0;
  private lastWritten = 0;

  constructor(options: AsciicastOptions) {
    this.options = options;
    this.timeline = new Timeline(options);
  }

  header(): string {
    const { version, size, timestamp, title, command, env, theme } = this.options;
    const { cols, rows } = size;
    const term = env?.['TERM'];
    const colours = theme === undefined ? {} : { theme: castTheme(theme) };
    return `${JSON.stringify({
      version,
      ...(version === 2
        ? { width: cols, height: rows }
        : { term: { cols, rows, ...(term !== undefined && { type: term }), ...colours } }),
      ...(timestamp !== undefined && { timestamp }),
      ...(title !== undefined && { title }),
      ...(command !== undefined && { command }),
      ...(env !== undefined && { env }),
      ...(version === 2 && colours),
    })}\n`;
  }

  event(event: ProcessEvent): string {
    const atMs = this.timeline.at(event.atUs);
    this.lastMs = atMs;
    if (event.kind === 'output') return this.text(atMs, 'o', this.output.push(event.data));
    if (event.kind === 'resize')
      return this.line(atMs, 'r', `${event.body.cols}x${event.body.rows}`);
    if (event.kind === 'note') {
      const label = this.options.markOf?.(event.body);
      return label === undefined ? '' : this.line(atMs, 'm', label);
    }
    if (
      event.kind === 'input' &&
      this.options.includeInput === true &&
      event.body.data !== undefined
    )
      return this.text(atMs, 'i', this.input.push(Buffer.from(event.body.data, 'base64')));
    if (event.kind === 'exited' && this.options.version === 3 && event.body.outcome.kind === 'exit')
      return this.line(atMs, 'x', String(event.body.outcome.code));
    return '';
  }

  /** The bytes of an incomplete character at the end. */
  end(): string {
    return this.text(this.lastMs, 'o', this.output.end());
  }

  line(atMs: number, code: string, data: string): string {
    const micros = Math.round(atMs * 1000);
    const time = this.options.version === 2 ? micros : micros - this.lastWritten;
    this.lastWritten = micros;
    return `${JSON.stringify([time / 1e6, code, data])}\n`;
  }

  private text(atMs: number, code: string, data: string): string {
    return data === '' ? '' : this.line(atMs, code, data);
  }
}

function castTheme({ foreground, background, palette }: Theme): Record<string, string> {
  return {
    fg: hexOf(foreground),
    bg: hexOf(background),
    palette: palette.slice(0, 16).map(hexOf).join(':'),
  };
}
