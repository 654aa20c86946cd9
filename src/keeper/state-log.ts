// The log of state transitions: one line for each change of state of a process or of the keeper, so that a stuck state can
// be explained afterwards. The file is private and bounded. A pool thread writes it in batches, so that no transition waits
// for the disk. It contains names and outcomes, never a command or an environment.

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
import { openPrivate } from './home.ts';

export interface StateChange {
  readonly event: string;
  /** Undefined: the keeper itself. */
  readonly process?: { readonly owner: string; readonly id: string } | undefined;
  readonly reason: string;
}

export interface StateLogOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly report: (message: string) => void;
  /** The file is rotated at this size. */
  readonly maxBytes?: number;
}

const MAX_BYTES = 1024 * 1024;
/** How long lines are collected before they are written. */
const BATCH_MS = 200;
/** Most lines that wait for a slow disk. */
const MOST_WAITING = 10_000;
const LONGEST_WORD = 200;

/** Short text that needs no escapes. */
const PLAIN = new RegExp(String.raw`^[ !#-\[\]-~]{0,${LONGEST_WORD}}$`);

const writing = promisify(write);

export class StateLog {
  private readonly options: StateLogOptions;
  private readonly maxBytes: number;
  private fd: number | undefined;
  private bytes = 0;
  /** Not written yet. Kept as objects, which cost the garbage collector less than texts. */
  private waiting: (StateChange & { readonly wallMs: number })[] = [];
  private missing = 0;
  private cancel: (() => void) | undefined;
  private busy = false;

  constructor(options: StateLogOptions) {
    this.options = options;
    this.maxBytes = options.maxBytes ?? MAX_BYTES;
    try {
      this.fd = this.open();
      this.bytes = fstatSync(this.fd).size;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      options.report(`changes of state cannot be logged: ${reason}`);
    }
  }

  note({ event, process, reason }: StateChange): void {
    if (this.fd === undefined) return;
    if (this.waiting.length >= MOST_WAITING) {
      this.missing += 1;
      return;
    }
    this.waiting.push({ wallMs: this.options.clock.wallMs(), event, process, reason });
    this.writeSoon();
  }

  /** Writes the waiting lines synchronously. */
  close(): void {
    this.cancel?.();
    const { fd } = this;
    if (fd === undefined) return;
    this.fd = undefined;
    try {
      writeSync(fd, this.take());
      closeSync(fd);
    } catch {
      // On a full disk the last lines are missing, as the ones before them were.
    }
  }

  private writeSoon(): void {
    if (this.busy) return;
    this.cancel ??= this.options.clock.after(BATCH_MS, () => {
      this.cancel = undefined;
      void this.flush();
    });
  }

  /** Writes the waiting lines; also called by a timer after each line. */
  async flush(): Promise<void> {
    if (this.fd === undefined || this.busy || this.waiting.length === 0) return;
    this.busy = true;
    const count = this.waiting.length;
    const missing = this.missing;
    try {
      const { bytesWritten } = await writing(this.fd, Buffer.from(this.take()));
      this.bytes += bytesWritten;
      if (this.bytes >= this.maxBytes) this.rotate();
    } catch {
      // The disk refuses: the next line that is written says how many are missing.
      this.missing += missing + count;
    } finally {
      this.busy = false;
    }
    if (this.waiting.length > 0) this.writeSoon();
  }

  private take(): string {
    const { missing } = this;
    this.missing = 0;
    let time = { wallMs: Number.NaN, text: '' };
    const lines = this.waiting.map(({ wallMs, event, process, reason }) => {
      // Many changes share a millisecond, whose text costs more than the rest of the line.
      if (wallMs !== time.wallMs) time = { wallMs, text: new Date(wallMs).toISOString() };
      const who = process ? `${word(process.owner)} ${word(process.id)}` : 'keeper';
      return `${time.text} ${event} ${who}: ${escaped(reason)}\n`;
    });
    this.waiting = [];
    if (missing === 0) return lines.join('');
    const now = new Date(this.options.clock.wallMs()).toISOString();
    return `${now} missing keeper: ${missing} lines could not be written\n${lines.join('')}`;
  }

  private rotate(): void {
    const { path } = this.options;
    const old = this.fd;
    if (old === undefined) return;
    this.bytes = 0;
    try {
      renameSync(path, `${path}.1`);
      this.fd = this.open();
      closeSync(old);
    } catch {
      // No descriptor, or the folder is not writable: keep the bound by truncating.
      ftruncateSync(old, 0);
    }
  }

  private open(): number {
    return openPrivate(this.options.path, constants.O_WRONLY | constants.O_APPEND);
  }
}

/** A client's name as one word. */
function word(text: string): string {
  return /^[\w.:@/-]+$/.test(text) && text.length <= LONGEST_WORD ? text : `"${escaped(text)}"`;
}

/** One line of printable ASCII. */
function escaped(text: string): string {
  if (PLAIN.test(text)) return text;
  const cut = text.length > LONGEST_WORD ? `${text.slice(0, LONGEST_WORD)}...` : text;
  return cut.replace(/[^\x20-\x7e]|["\\]/gu, (character) =>
    /["\\]/.test(character)
      ? `\\${character}`
      : `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`,
  );
}
