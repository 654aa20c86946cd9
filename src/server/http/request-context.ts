// One request from its arrival to the end of its answer: what its handler sees, and what metrics and the access log
// record.

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { CancelSignal } from '../../base/cancel-signal.ts';
import { systemClock } from '../../base/clock.ts';
import { Cancellation } from '../../protocol/cancellation.ts';
import type { ErrorCode } from '../../protocol/errors.ts';
import type { UnreadAnswers } from './unread-answers.ts';
import { chatOf } from '../coder/chat-scope.ts';
import type { Caller } from './gate.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Pipeline } from './pipeline.ts';
import type { Exchange } from './router.ts';

/**
 * One line of the access log. It never contains a token or a query; "-" stands for something that was not an HTTP
 * request.
 */
export interface AccessEntry {
  readonly method: string;
  readonly path: string;
  /** 499: the client disconnected before it got an answer. */
  readonly status: number;
  readonly ms: number;
  /** The route's name; absent if no handler was called. */
  readonly route?: string;
  readonly refusal?: ErrorCode;
  readonly tokenId?: string;
  readonly chatId?: string;
  readonly ancestorChatIds?: readonly string[];
}

/** A request that has ended, for its span. */
export interface TracedRequest {
  readonly method: string;
  readonly status: number;
  readonly route: string | undefined;
  readonly refusal: ErrorCode | undefined;
  readonly tookUs: number;
}

export interface RequestTracer<Span> {
  begin(headers: IncomingHttpHeaders): Span;
  /** What is started in `act` belongs to the span. */
  within<T>(span: Span, act: () => T): T;
  end(span: Span, request: TracedRequest): void;
}

export interface Watchers {
  readonly metrics?: Metrics | undefined;
  /** Only where an exporter of traces is configured. */
  readonly tracer?: RequestTracer<unknown> | undefined;
  /** Called once for each request, when it has ended. */
  readonly access?: ((entry: AccessEntry) => void) | undefined;
}

export class RequestContext {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  caller: Caller | undefined;
  route: string | undefined;
  refusal: ErrorCode | undefined;
  private readonly search: string;
  private readonly watchers: Watchers;
  private readonly pipeline: Pipeline | undefined;
  private readonly startedUs = systemClock.nowUs();
  private readonly span: unknown;
  private parsedQuery: URLSearchParams | undefined;
  private disconnect: Cancellation | undefined;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    watchers: Watchers,
    pipeline?: Pipeline,
  ) {
    const { url = '' } = request;
    const at = url.indexOf('?');
    this.request = request;
    this.response = response;
    this.path = at < 0 ? url : url.slice(0, at);
    this.search = at < 0 ? '' : url.slice(at + 1);
    this.watchers = watchers;
    this.pipeline = pipeline;
    watchers.metrics?.begun();
    this.span = watchers.tracer?.begin(request.headers);
  }

  /** Parsed on first use: most requests have no query. */
  get query(): URLSearchParams {
    this.parsedQuery ??= new URLSearchParams(this.search);
    return this.parsedQuery;
  }

  /** Aborts when the client disconnects before its answer is complete. Made on first use. */
  get gone(): CancelSignal {
    this.disconnect ??= new Cancellation();
    if (this.response.destroyed) this.abortIfUnfinished();
    return this.disconnect;
  }

  onNext(listener: () => void): void {
    this.pipeline?.onNext(listener);
  }

  handle<T>(act: () => T): T {
    const { tracer } = this.watchers;
    return tracer ? tracer.within(this.span, act) : act();
  }

  /** The connection now speaks another protocol; as an HTTP request it has ended. */
  upgraded(): void {
    this.ended(101);
  }

  /** The answer was sent, or the client disconnected. */
  closed(): void {
    this.abortIfUnfinished();
    this.ended(this.response.headersSent ? this.response.statusCode : 499);
  }

  private abortIfUnfinished(): void {
    if (!this.response.writableFinished) this.disconnect?.abort();
  }

  private ended(status: number): void {
    const { caller, route, refusal, request, watchers } = this;
    const tookUs = systemClock.nowUs() - this.startedUs;
    watchers.metrics?.answered({ status, route, refusal, tookUs });
    const { method = '' } = request;
    watchers.tracer?.end(this.span, { method, status, route, refusal, tookUs });
    if (!watchers.access) return;
    const chat = caller && chatOf(request.headers);
    watchers.access({
      method,
      path: loggedPath(this.path),
      status,
      ms: tookUs / 1000,
      ...(route !== undefined && { route }),
      ...(refusal !== undefined && { refusal }),
      ...(caller && { tokenId: caller.tokenId }),
      ...(chat && { chatId: chat.id }),
      ...(chat && chat.ancestors.length > 0 && { ancestorChatIds: chat.ancestors }),
    });
  }
}

/** E2B's clients in debug mode can put a token only into the path. */
function loggedPath(path: string): string {
  return path.replace(/^\/e2b\/t\/[^/]+/, '/e2b/t/-');
}

/** An authorized request, as its handler sees it. */
export class AuthorizedRequest implements Exchange {
  readonly caller: Caller;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly params: Exchange['params'];
  readonly body: Buffer;
  readonly unread: UnreadAnswers;
  private readonly context: RequestContext;

  constructor(
    context: RequestContext,
    parts: Pick<Exchange, 'caller' | 'params' | 'body' | 'unread'>,
  ) {
    ({ request: this.request, response: this.response } = context);
    ({ caller: this.caller, params: this.params, body: this.body, unread: this.unread } = parts);
    this.context = context;
  }

  get query(): URLSearchParams {
    return this.context.query;
  }

  get gone(): CancelSignal {
    return this.context.gone;
  }

  onNext(listener: () => void): void {
    this.context.onNext(listener);
  }
}
