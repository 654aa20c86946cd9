// Sends bodies to one address of a collector.

import { gzipSync } from 'node:zlib';
import type { OtlpTarget } from './otlp-settings.ts';

/** later: the collector is not there, or asks to try again. refused: it will never take this one. */
export type Sent = 'sent' | 'later' | 'refused';

/** Statuses after which OTLP lets a client try again. */
const LATER = new Set([429, 502, 503, 504]);

export class OtlpSender {
  private readonly target: OtlpTarget;
  private readonly report: (problem: string) => void;
  /** A failure is reported once, and again after a success in between. */
  private reported = false;

  constructor(target: OtlpTarget, report: (problem: string) => void) {
    this.target = target;
    this.report = report;
  }

  /** Redirects are not followed: nobody here chose their target. */
  async send(body: object, signal?: AbortSignal): Promise<Sent> {
    const { url, headers, timeoutMs, gzip } = this.target;
    const text = JSON.stringify(body);
    const limit = AbortSignal.timeout(timeoutMs);
    try {
      const response = await fetch(url, {
        method: 'POST',
        redirect: 'manual',
        headers: {
          ...headers,
          'Content-Type': 'application/json',
          'User-Agent': 'holdfast',
          ...(gzip && { 'Content-Encoding': 'gzip' }),
        },
        body: gzip ? gzipSync(text) : text,
        signal: signal ? AbortSignal.any([limit, signal]) : limit,
      });
      await response.body?.cancel();
      const { status } = response;
      if (response.ok) {
        this.reported = false;
        return 'sent';
      }
      this.reportOnce(`it answered ${status}`);
      return LATER.has(status) ? 'later' : 'refused';
    } catch (error) {
      if (!signal?.aborted) this.reportOnce(reasonOf(error));
      return 'later';
    }
  }

  private reportOnce(reason: string): void {
    if (this.reported) return;
    this.reported = true;
    this.report(`the collector does not take ${this.target.signal}: ${reason}.`);
  }
}

/** fetch says only that it failed; its cause says why. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error && error.cause.message !== ''
    ? error.cause.message
    : error.message;
}
