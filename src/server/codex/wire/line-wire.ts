// A codex connection over two streams, one JSON text per line: for a pipe or ssh.

import type { Readable, Writable } from 'node:stream';
import type { Wire, WireListener } from './wire.ts';

const MAX_LINE_BYTES = 64 * 1024 * 1024;
const LOW_WATER_BYTES = 1024 * 1024;
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

  allocate(bytes: number): Buffer {
    const line = Buffer.allocUnsafe(bytes + 1);
    line[bytes] = NEWLINE;
    // The stream is corked, so the line is sent only after it has been filled.
    if (!this.over) this.output.write(line);
    return line.subarray(0, bytes);
  }

  batch(sending: () => void): void {
    this.output.cork();
    sending();
    this.output.uncork();
  }

  backpressure(): Promise<void> | undefined {
    if (this.over || this.output.writableLength < LOW_WATER_BYTES) return undefined;
    return new Promise((resolve) => {
      this.output.once('drain', resolve);
    });
  }

  alive(): Promise<boolean> {
    return Promise.resolve(!this.over);
  }

  pauseReading(paused: boolean): void {
    if (paused) this.input.pause();
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

  /** A carriage return before the line feed does not count. */
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
