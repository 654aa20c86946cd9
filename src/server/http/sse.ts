// A stream of server-sent events to one client: written at the client's pace and kept alive by comments.

import { HoldfastError, toErrorShape } from '../../protocol/errors.ts';
import { invalid } from '../native/input.ts';
import { writePaced } from './paced-write.ts';
import type { Exchange } from './router.ts';

export interface SseEvent {
  /** A client that reconnects sends the last id it got. */
  readonly id?: number;
  readonly event: string;
  readonly data: unknown;
}

/** Comments keep proxies from closing a silent connection. */
export const HEARTBEAT_MS = 15_000;
const RETRY_MS = 1000;

export class EventStream {
  private readonly exchange: Exchange;

  constructor(exchange: Exchange) {
    this.exchange = exchange;
    const { response } = exchange;
    response.writeHead(200, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Accel-Buffering': 'no',
      'X-Content-Type-Options': 'nosniff',
    });
    response.write(`retry: ${RETRY_MS}\n\n`);
  }

  /** Resolves when the client can take more. Without events it sends a heartbeat. */
  send(events: readonly SseEvent[]): Promise<void> {
    const text = events.length === 0 ? ':\n\n' : events.map(encodeEvent).join('');
    return writePaced(this.exchange, text);
  }

  end(): void {
    this.exchange.response.end();
  }

  /** The status has been sent, so an error is sent as an event. */
  async fail(thrown: unknown): Promise<void> {
    if (this.exchange.gone.aborted || !(thrown instanceof HoldfastError)) throw thrown;
    const { remedy, retryable } = thrown;
    const data = { error: { ...toErrorShape(thrown), remedy, retryable } };
    await this.send([{ event: 'problem', data }]);
    this.end();
  }
}

/** JSON contains no line break, so one data line is enough. */
function encodeEvent({ id, event, data }: SseEvent): string {
  const idLine = id === undefined ? '' : `id: ${id}\n`;
  return `${idLine}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Where a client continues: after the last event it got, or where its first request said. */
export function resumeAfter({ request }: Exchange, asked: number | undefined): number {
  const last = request.headers['last-event-id'];
  if (last === undefined || last === '') return asked ?? 0;
  if (typeof last !== 'string' || !/^\d{1,15}$/.test(last))
    throw invalid('must be the number of an event', 'Last-Event-ID');
  return Number(last);
}
