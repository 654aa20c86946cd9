// A codex connection on the lines of two streams: one JSON per line, as a program at the end of a pipe or of ssh speaks it.

import type { Readable, Writable } from 'node:stream';
import type { Wire, WireListener } from './wire.ts';

const MAX_LINE_BYTES = 64 * 1024 * 1024;
const ROOM_BYTES = 1024 * 1024;
const NEWLINE = 0x0a;

export class LineWire implements Wire {
  readonly source = 'JSON-RPC message from exec-server stdio';
  private readonly input: Readable;
  private readonly output: Writable;
  private readonly listener: WireListener;
  private parts: Buffer[] = [];
  private bytes = 0;
  private over = false;

  constructor(input: Readable, output: Writable, listener: WireListener) {
    this.input = input;
    this.output = output;
    this.listener = listener;
    input.on('data', (chunk: Buffer) => this.received(chunk));
    input.once('end', () => this.end());
    input.once('error', () => this.end());
  }

  send(text: string): void {
    if (!this.over) this.output.write(`${text}\n`);
  }

  message(bytes: number): Buffer {
    const line = Buffer.allocUnsafe(bytes + 1);
    line[bytes] = NEWLINE;
    // Corked, so that it is looked at only when it has been filled.
    if (!this.over) this.output.write(line);
    return line.subarray(0, bytes);
  }

  together(sending: () => void): void {
    this.output.cork();
    sending();
    this.output.uncork();
  }

  room(): Promise<void> | undefined {
    if (this.over || this.output.writableLength < ROOM_BYTES) return undefined;
    return new Promise((resolve) => {
      this.output.once('drain', resolve);
    });
  }

  alive(): Promise<boolean> {
    return Promise.resolve(!this.over);
  }

  hold(held: boolean): void {
    if (held) this.input.pause();
    else if (!this.over) this.input.resume();
  }

  drop(): void {
    this.end();
  }

  private received(chunk: Buffer): void {
    let from = 0;
    for (;;) {
      const at = chunk.indexOf(NEWLINE, from);
      const end = at < 0 ? chunk.length : at;
      this.bytes += end - from;
      this.parts.push(chunk.subarray(from, end));
      if (this.tooLong(at >= 0)) {
        this.end();
        return;
      }
      if (at < 0) return;
      from = at + 1;
      this.line();
      if (this.over) return;
    }
  }

  /** A carriage return before the line feed is no part of the line. */
  private tooLong(whole: boolean): boolean {
    if (this.bytes <= MAX_LINE_BYTES) return false;
    return !(this.bytes === MAX_LINE_BYTES + 1 && (!whole || this.parts.at(-1)?.at(-1) === 0x0d));
  }

  private line(): void {
    const text = Buffer.concat(this.parts).toString().replace(/\r$/, '');
    this.parts = [];
    this.bytes = 0;
    if (text.trim() !== '') this.listener.received(text);
  }

  private end(): void {
    if (this.over) return;
    this.over = true;
    this.input.destroy();
    this.listener.ended();
  }
}
