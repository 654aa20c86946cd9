// The log of a keeper or of a server: one line for each change of state and for each problem, as text or as JSON. The file is
// private and rotated by size. Lines about normal work are written in batches by a pool thread, so that no change of state
// waits for the disk; problems are written at once. It contains names and outcomes, never a command or an environment.

import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  renameSync,
  write,
  writeSync,
} from 'node:fs';
import { promisify } from 'node:util';
import type { Clock } from '../base/clock.ts';
import { LOG_LEVELS, type LogLevel, type LogSettings } from '../protocol/observe/log-settings.ts';
import { openPrivate } from './home.ts';

export interface LogEntry {
  readonly event: string;
  readonly process?: { readonly owner: string; readonly id: string } | undefined;
  readonly message: string;
  /** Further lines, such as where an error came from. */
  readonly detail?: string;
  /** Only in JSON. */
  readonly more?: Readonly<Record<string, string | number>>;
}

export interface LogOptions extends LogSettings {
  readonly path: string;
  /** Who writes. */
  readonly part: 'keeper' | 'server';
  readonly clock: Clock;
  /** Called with the problem if there can be no log. */
  readonly report: (message: string) => void;
  /** Gets the descriptor of each new file. */
  readonly opened?: (fd: number) => void;
  /** The file is rotated at this size. */
  readonly maxBytes?: number;
}

interface Line extends LogEntry {
  readonly wallMs: number;
  readonly level: LogLevel;
}

const MAX_BYTES = 4 * 1024 * 1024;
/** How long lines are collected before they are written. */
const BATCH_MS = 200;
/** Most lines that wait for a slow disk. */
const MOST_WAITING = 10_000;
const LONGEST_WORD = 200;
const LONGEST_DETAIL = 4000;

/** Short text that needs no escapes. */
const PLAIN = new RegExp(String.raw`^[ !#-\[\]-~]{0,${LONGEST_WORD}}$`);

const writing = promisify(write);

/** A message of several lines: the first says what happened. */
export function problemEntry(text: string): LogEntry {
  const at = text.indexOf('\n');
  if (at < 0) return { event: 'problem', message: text };
  return { event: 'problem', message: text.slice(0, at), detail: text.slice(at + 1) };
}

export class Log {
  private readonly options: LogOptions;
  private readonly least: number;
  private readonly maxBytes: number;
  private fd: number | undefined;
  private bytes = 0;
  /** Not written yet. Kept as objects, which cost the garbage collector less than texts. */
  private waiting: Line[] = [];
  private missing = 0;
  private cancel: (() => void) | undefined;
  /** The write of a pool thread that is under way. */
  private writing: Promise<void> | undefined;

  constructor(options: LogOptions) {
    this.options = options;
    this.least = LOG_LEVELS.indexOf(options.level);
    this.maxBytes = options.maxBytes ?? MAX_BYTES;
    try {
      this.open();
      if (this.bytes >= this.maxBytes) this.rotate();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      options.report(`there can be no log: ${reason}`);
    }
  }

  /** Whether lines of this level are written, so that others need not be made. */
  has(level: LogLevel): boolean {
    return this.fd !== undefined && LOG_LEVELS.indexOf(level) >= this.least;
  }

  note(level: LogLevel, entry: LogEntry): void {
    if (!this.has(level)) return;
    if (this.waiting.length >= MOST_WAITING) {
      this.missing += 1;
      return;
    }
    const { event, process, message, detail, more } = entry;
    const wallMs = this.options.clock.wallMs();
    this.waiting.push({
      wallMs,
      level,
      event,
      process,
      message,
      ...(detail !== undefined && { detail }),
      ...(more && { more }),
    });
    // This program may not live to write it later.
    if (level === 'warn' || level === 'error') this.writeNow();
    else this.writeSoon();
  }

  /** Writes what is waiting, in order. A thread that still writes keeps the descriptor until it has finished. */
  async close(): Promise<void> {
    await this.writing;
    this.cancel?.();
    const { fd } = this;
    if (fd === undefined) return;
    this.writeNow();
    this.fd = undefined;
    closeSync(fd);
  }

  /** Writes the waiting lines; also called by a timer after each line. */
  async flush(): Promise<void> {
    const { fd } = this;
    if (fd === undefined || this.writing || this.waiting.length === 0) return;
    this.writing = this.writeInThread(fd);
    await this.writing;
    this.writing = undefined;
    if (this.waiting.length > 0) this.writeSoon();
  }

  private async writeInThread(fd: number): Promise<void> {
    const count = this.waiting.length;
    const missing = this.missing;
    try {
      const { bytesWritten } = await writing(fd, Buffer.from(this.take()));
      this.wrote(bytesWritten);
    } catch {
      // The disk refuses: the next line that is written says how many are missing.
      this.missing += missing + count;
    }
  }

  private writeSoon(): void {
    if (this.writing) return;
    this.cancel ??= this.options.clock.after(BATCH_MS, () => {
      this.cancel = undefined;
      void this.flush();
    });
  }

  /** Writes the waiting lines synchronously. */
  writeNow(): void {
    const { fd, missing } = this;
    const count = this.waiting.length;
    if (fd === undefined || count === 0) return;
    try {
      const bytes = writeSync(fd, this.take());
      // A rotation would close the file under the thread that writes.
      if (!this.writing) this.wrote(bytes);
      else this.bytes += bytes;
    } catch {
      this.missing += missing + count;
    }
  }

  private wrote(bytes: number): void {
    this.bytes += bytes;
    if (this.bytes >= this.maxBytes && this.fd !== undefined) this.rotate();
  }

  private take(): string {
    const { missing, options } = this;
    const lines = this.waiting;
    this.missing = 0;
    this.waiting = [];
    const render = lineMaker(options);
    const text = lines.map(render).join('');
    if (missing === 0) return text;
    const message = `${missing} lines could not be written`;
    const gap = {
      wallMs: options.clock.wallMs(),
      level: 'warn',
      event: 'missing',
      message,
    } as const;
    return `${render(gap)}${text}`;
  }

  private rotate(): void {
    const { path } = this.options;
    const old = this.fd;
    if (old === undefined) return;
    try {
      renameSync(path, `${path}.1`);
      this.open();
      closeSync(old);
    } catch {
      // No descriptor, or the folder is not writable: keep the bound by truncating.
      ftruncateSync(old, 0);
      this.bytes = 0;
    }
  }

  private open(): void {
    const { path, opened } = this.options;
    const fd = openPrivate(path, constants.O_WRONLY | constants.O_APPEND);
    this.fd = fd;
    this.bytes = fstatSync(fd).size;
    opened?.(fd);
  }
}

/** One line in the form of the log, for problems before there is one. */
export function logLine(
  part: LogOptions['part'],
  format: LogSettings['format'],
  level: LogLevel,
  entry: LogEntry,
): string {
  return lineMaker({ part, format })({ ...entry, level, wallMs: Date.now() });
}

function lineMaker({ part, format }: Pick<LogOptions, 'part' | 'format'>): (line: Line) => string {
  const shape = format === 'json' ? jsonLine : textLine;
  let time = { wallMs: Number.NaN, text: '' };
  return (line) => {
    // Many lines share a millisecond, whose text costs more than the rest of the line.
    if (line.wallMs !== time.wallMs)
      time = { wallMs: line.wallMs, text: new Date(line.wallMs).toISOString() };
    return shape(time.text, part, line);
  };
}

function textLine(time: string, part: string, line: Line): string {
  const { level, event, process, message, detail } = line;
  const who = process ? `${word(process.owner)} ${word(process.id)}` : part;
  const first = `${time} ${level.padEnd(5)} ${event} ${who}: ${escaped(message)}\n`;
  if (detail === undefined) return first;
  const lines = detail.slice(0, LONGEST_DETAIL).split('\n');
  return `${first}${lines.map((each) => `    ${escaped(each.trim())}\n`).join('')}`;
}

function jsonLine(time: string, part: string, line: Line): string {
  const { level, event, process, message, detail, more } = line;
  const entry = {
    time,
    level,
    part,
    event,
    ...(process && { owner: shortened(process.owner), process: shortened(process.id) }),
    message: shortened(message),
    ...(detail !== undefined && { detail: detail.slice(0, LONGEST_DETAIL) }),
    ...more,
  };
  return `${asAscii(JSON.stringify(entry))}\n`;
}

/** A client's name as one word. */
function word(text: string): string {
  return /^[\w.:@/-]+$/.test(text) && text.length <= LONGEST_WORD ? text : `"${escaped(text)}"`;
}

function shortened(text: string): string {
  return text.length > LONGEST_WORD ? `${text.slice(0, LONGEST_WORD)}...` : text;
}

/** Bidi and other invisible characters could show a reader another line than the one that was written. */
function asAscii(json: string): string {
  return json.replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** One line of printable ASCII. */
function escaped(text: string): string {
  if (PLAIN.test(text)) return text;
  return shortened(text).replace(/[^\x20-\x7e]|["\\]/gu, (character) =>
    /["\\]/.test(character)
      ? `\\${character}`
      : `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`,
  );
}
