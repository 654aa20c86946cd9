// One request from its beginning to the end of its answer: what its handler sees of it, and what is told when it is over.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { systemClock } from '../../base/clock.ts';
import { Cancellation } from '../../protocol/cancellation.ts';
import type { ErrorCode } from '../../protocol/errors.ts';
import type { UnreadAnswers } from './unread-answers.ts';
import { chatOf } from '../coder/chat-scope.ts';
import type { Caller } from './gate.ts';
import type { Metrics } from '../metrics.ts';
import type { Exchange } from './router.ts';

/** One line of an access log. No token and no query is ever in it; "-" stands for what was no request at all. */
export interface AccessEntry {
  readonly method: string;
  readonly path: string;
  /** 499: the client went away before there was an answer. */
  readonly status: number;
  readonly ms: number;
  /** The row that answered; absent when no handler was entered. */
  readonly route?: string;
  readonly refusal?: ErrorCode;
  readonly tokenId?: string;
  readonly chatId?: string;
  readonly ancestorChatIds?: readonly string[];
}

export interface Watchers {
  readonly metrics?: Metrics | undefined;
  /** Told of every request when it is over. */
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
  private readonly startedUs = systemClock.nowUs();
  private asked: URLSearchParams | undefined;
  private leaving: Cancellation | undefined;

  constructor(request: IncomingMessage, response: ServerResponse, watchers: Watchers) {
    const { url = '' } = request;
    const at = url.indexOf('?');
    this.request = request;
    this.response = response;
    this.path = at < 0 ? url : url.slice(0, at);
    this.search = at < 0 ? '' : url.slice(at + 1);
    this.watchers = watchers;
    watchers.metrics?.begun();
  }

  /** Made for those who look at it: most requests have none. */
  get query(): URLSearchParams {
    this.asked ??= new URLSearchParams(this.search);
    return this.asked;
  }

  /** Called off when the client goes before its answer is complete; most requests are answered before anybody could go. */
  get gone(): AbortSignal {
    this.leaving ??= new Cancellation();
    if (this.response.destroyed) this.left();
    return this.leaving.signal;
  }

  /** The answer is another protocol, and never over as an answer is. */
  upgraded(): void {
    this.over(101);
  }

  /** The answer has been sent, or nobody is there any more to take it. */
  closed(): void {
    this.left();
    this.over(this.response.headersSent ? this.response.statusCode : 499);
  }

  private left(): void {
    if (!this.response.writableFinished) this.leaving?.abort();
  }

  private over(status: number): void {
    const { caller, route, refusal, request, watchers } = this;
    watchers.metrics?.answered(status, route, refusal);
    if (!watchers.access) return;
    const chat = caller && chatOf(request.headers);
    watchers.access({
      method: request.method ?? '',
      path: this.path,
      status,
      ms: (systemClock.nowUs() - this.startedUs) / 1000,
      ...(route !== undefined && { route }),
      ...(refusal !== undefined && { refusal }),
      ...(caller && { tokenId: caller.tokenId }),
      ...(chat && { chatId: chat.id }),
      ...(chat && chat.ancestors.length > 0 && { ancestorChatIds: chat.ancestors }),
    });
  }
}

/** A request that has been let in, as its handler sees it. */
export class AuthorizedRequest implements Exchange {
  readonly caller: Caller;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly params: Exchange['params'];
  readonly body: Buffer;
  readonly room: UnreadAnswers;
  private readonly context: RequestContext;

  constructor(
    context: RequestContext,
    parts: Pick<Exchange, 'caller' | 'params' | 'body' | 'room'>,
  ) {
    ({ request: this.request, response: this.response } = context);
    ({ caller: this.caller, params: this.params, body: this.body, room: this.room } = parts);
    this.context = context;
  }

  get query(): URLSearchParams {
    return this.context.query;
  }

  get gone(): AbortSignal {
    return this.context.gone;
  }
}
