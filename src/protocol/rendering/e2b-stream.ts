// The stream of one process as E2B's clients read it: Connect envelopes with base64 output, then the end. It is made from
// pages of events and does no input or output itself, so that the server and the keeper can both write it.

import type { Page } from '../host-api.ts';
import type { Stream } from '../event.ts';
import type { Outcome } from '../process.ts';
import { decodeRecords } from '../record.ts';

export interface E2bStreamParams {
  readonly pid: number;
  readonly isTerminal: boolean;
  /** Output before this offset is not sent; then the stream begins at the start of a line. */
  readonly skipBytes?: number;
  /** A keepalive event after this long without a message. */
  readonly keepaliveMs: number;
  /** The stream ends after this long; the process does not. */
  readonly timeoutMs?: number;
  /** Recorded as the sender of the signal that ends the processes of a sandbox with it. */
  readonly sandboxEnded: string;
}

interface NextRead {
  readonly after: number;
  readonly offset: number;
  readonly waitMs: number;
}

/** After the exit, so that the last output of descendants is included; their open pipes hold up nobody longer. */
const LAST_WORDS_MS = 100;
const PIPE_CHUNK_BYTES = 32 * 1024;
const TERMINAL_CHUNK_BYTES = 16 * 1024;
const END_OF_STREAM = 0x02;
/** `started` is the first event: the stream has its own. */
const AFTER_STARTED = 1;
const NEWLINE = 10;

/** As Go names them: clients show these words. */
const signalWords: Readonly<Record<string, string>> = {
  SIGHUP: 'hangup',
  SIGINT: 'interrupt',
  SIGQUIT: 'quit',
  SIGILL: 'illegal instruction',
  SIGTRAP: 'trace/breakpoint trap',
  SIGABRT: 'aborted',
  SIGBUS: 'bus error',
  SIGFPE: 'floating point exception',
  SIGKILL: 'killed',
  SIGUSR1: 'user defined signal 1',
  SIGSEGV: 'segmentation fault',
  SIGUSR2: 'user defined signal 2',
  SIGPIPE: 'broken pipe',
  SIGALRM: 'alarm clock',
  SIGTERM: 'terminated',
};

/** One message: flags, length, JSON. */
export function envelope(message: unknown, flags = 0): Buffer {
  return rawEnvelope(JSON.stringify(message), flags);
}

function rawEnvelope(json: string, flags: number): Buffer {
  const bytes = Buffer.allocUnsafe(5 + Buffer.byteLength(json));
  bytes[0] = flags;
  bytes.writeUInt32BE(bytes.length - 5, 1);
  bytes.write(json, 5);
  return bytes;
}

/** The last envelope of every stream. */
export function endEnvelope(error?: { readonly code: string; readonly message: string }): Buffer {
  return envelope(error ? { error } : {}, END_OF_STREAM);
}

export class E2bStream {
  private readonly params: E2bStreamParams;
  private position = { after: AFTER_STARTED, offset: 0 };
  private outcome: Outcome | undefined;
  private readonly startedMs: number;
  private exitedMs = 0;
  private over = false;
  private atLineStart: boolean;

  constructor(params: E2bStreamParams, nowMs: number) {
    this.params = params;
    this.startedMs = nowMs;
    this.atLineStart = (params.skipBytes ?? 0) === 0;
  }

  begin(): Buffer {
    return envelope({ event: { start: { pid: this.params.pid } } });
  }

  /** The next page to read; undefined when the stream is complete. */
  next(nowMs: number): NextRead | undefined {
    if (this.over) return undefined;
    const untilMs = this.outcome ? this.exitedMs + LAST_WORDS_MS - nowMs : this.patienceMs(nowMs);
    return { ...this.position, waitMs: Math.max(0, Math.ceil(untilMs)) };
  }

  take(page: Page, nowMs: number): Buffer {
    const parts: Buffer[] = [];
    if (page.missed) parts.push(this.missing(page.missed.bytes, page.missed.reason));
    for (const event of decodeRecords(page.records)) {
      if (event.kind === 'output') this.addOutput(event, parts);
      else if (event.kind === 'gap') parts.push(this.missing(event.body.bytes, event.body.reason));
      else if (event.kind === 'exited') {
        this.outcome = event.body.outcome;
        this.exitedMs = nowMs;
      }
    }
    this.position = { after: page.nextAfter, offset: page.nextOffset };
    this.finish(page, nowMs, parts);
    if (parts.length === 0) parts.push(envelope({ event: { keepalive: {} } }));
    return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
  }

  /** Ends the stream: its process can no longer be read. */
  fail(message: string): Buffer {
    this.over = true;
    return endEnvelope({ code: 'unavailable', message });
  }

  private finish(page: Page, nowMs: number, parts: Buffer[]): void {
    const outcome = this.outcome ?? (page.end ? page.outcome : undefined);
    const spoken = page.end || nowMs >= this.exitedMs + LAST_WORDS_MS;
    if (outcome && spoken) parts.push(...this.ending(outcome));
    else if (!outcome && this.patienceMs(nowMs) <= 0 && this.params.timeoutMs !== undefined)
      parts.push(
        endEnvelope({ code: 'deadline_exceeded', message: 'the stream has reached its timeout' }),
      );
    else {
      // Between the exit and the last words there is nothing to keep alive.
      if (outcome && parts.length === 0) parts.push(Buffer.alloc(0));
      return;
    }
    this.over = true;
  }

  private patienceMs(nowMs: number): number {
    const { keepaliveMs, timeoutMs } = this.params;
    if (timeoutMs === undefined) return keepaliveMs;
    return Math.min(keepaliveMs, this.startedMs + timeoutMs - nowMs);
  }

  private addOutput(
    { stream, data, offset }: { stream: Stream; data: Buffer; offset: number },
    parts: Buffer[],
  ): void {
    const { skipBytes = 0, isTerminal } = this.params;
    let from = Math.max(0, skipBytes - offset);
    if (from >= data.length) return;
    if (!this.atLineStart) {
      const newline = data.indexOf(NEWLINE, from);
      if (newline < 0) return;
      from = newline + 1;
      this.atLineStart = true;
    }
    const size = isTerminal ? TERMINAL_CHUNK_BYTES : PIPE_CHUNK_BYTES;
    const name = isTerminal ? 'pty' : stream === 'stderr' ? 'stderr' : 'stdout';
    for (let at = from; at < data.length; at += size) {
      const piece = data.subarray(at, at + size).toString('base64');
      parts.push(rawEnvelope(`{"event":{"data":{"${name}":"${piece}"}}}`, 0));
    }
  }

  /** The protocol cannot say that output is missing, so the stream of errors says it. */
  private missing(bytes: number, reason: string): Buffer {
    const text = `[holdfast: ${bytes} bytes of output are missing here (${reason})]\n`;
    const name = this.params.isTerminal ? 'pty' : 'stderr';
    return envelope({ event: { data: { [name]: Buffer.from(text).toString('base64') } } });
  }

  private ending(outcome: Outcome): Buffer[] {
    if (outcome.kind === 'timeout') {
      const message = `the process was ended after its timeout of ${outcome.afterMs} ms`;
      return [endEnvelope({ code: 'deadline_exceeded', message })];
    }
    if (outcome.kind === 'signal' && outcome.by === this.params.sandboxEnded) {
      const message = 'the sandbox was killed or reached its end of life';
      return [endEnvelope({ code: 'unavailable', message })];
    }
    return [envelope({ event: { end: endEvent(outcome) } }), endEnvelope()];
  }
}

function endEvent(outcome: Exclude<Outcome, { kind: 'timeout' }>): Record<string, unknown> {
  if (outcome.kind === 'exit') {
    const status = `exit status ${outcome.code}`;
    const error = outcome.code === 0 ? {} : { error: status };
    return { exitCode: outcome.code, exited: true, status, ...error };
  }
  const status =
    outcome.kind === 'lost'
      ? `lost: ${outcome.reason}`
      : `signal: ${signalWords[outcome.signal] ?? outcome.signal}`;
  return { exitCode: -1, exited: false, status, error: status };
}
