// The operations that the SDK uses, over HTTP or in-process: those of the host for one owner, with decoded events.

import type { ProcessEvent } from '../protocol/event.ts';
import type { Missed, Results } from '../protocol/host-api.ts';
import type { Params, StartSpec } from '../protocol/operations.ts';
import type { Outcome, ProcessState } from '../protocol/process.ts';
import type { TerminalApi } from './terminal-api.ts';

export interface EventPage {
  readonly events: readonly ProcessEvent[];
  readonly nextAfter: number;
  readonly nextOffset: number;
  readonly missed?: Missed;
  readonly state: ProcessState;
  readonly outcome?: Outcome;
  readonly end: boolean;
}

export interface Api {
  start(spec: StartSpec, signal?: AbortSignal): Promise<Results['start']>;
  list(filter: Params<'list'>): Promise<Results['list']>;
  get(id: string): Promise<Results['get']>;
  events(params: Params<'read'>, signal?: AbortSignal): Promise<EventPage>;
  /** The raw bytes of the output. */
  range(params: Params<'range'>, signal?: AbortSignal): Promise<Results['range']>;
  text(params: Params<'text'>, signal?: AbortSignal): Promise<Results['text']>;
  search(params: Params<'search'>, signal?: AbortSignal): Promise<Results['search']>;
  write(params: Params<'write'>): Promise<Results['write']>;
  resize(params: Params<'resize'>): Promise<Results['resize']>;
  signal(params: Params<'signal'>): Promise<Results['signal']>;
  wait(params: Params<'wait'>, signal?: AbortSignal): Promise<Results['wait']>;
  ports(id: string): Promise<Results['ports']>;
  tree(id: string): Promise<Results['tree']>;
  remove(params: Params<'remove'>): Promise<Results['remove']>;
  completions(params: Params<'completions'>, signal?: AbortSignal): Promise<Results['completions']>;
  acknowledge(params: Params<'acknowledge'>): Promise<Results['acknowledge']>;
  attention(params: Params<'attention'>, signal?: AbortSignal): Promise<Results['attention']>;
  dismiss(id: string): Promise<Results['dismiss']>;
  /** Opens, renews or, with `ttlMs: 0`, ends a lease. */
  holdLease(params: Params<'holdLease'>, signal?: AbortSignal): Promise<Results['holdLease']>;
  health(): Promise<Results['health']>;
  readonly terminals: TerminalApi;
  /** Closes connections. Processes continue, unless the host is in this process. */
  close(): Promise<void>;
}
