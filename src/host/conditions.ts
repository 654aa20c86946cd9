// What can be waited for on one process. A condition is looked at after every change of the process; the few that
// depend on something else as well (time, a search, the kernel's table of sockets) wake the waiter themselves.

import type { Clock } from '../base/clock.ts';
import type { Met } from '../protocol/host-api.ts';
import type { Condition } from '../protocol/operations.ts';
import type { SearchHit, SearchPosition, SearchResult } from '../protocol/views.ts';
import type { HeldProcess } from './held-process.ts';

export type Verdict =
  | { readonly met: true; readonly hit?: SearchHit; readonly port?: number }
  /** It can no longer be met. */
  | { readonly met: false };

export interface ConditionTools {
  readonly clock: Clock;
  /** Searches the output for the first hit, from a byte offset or from where an earlier search ended. */
  search(
    process: HeldProcess,
    condition: TextCondition,
    from: { from: number } | { resume: SearchPosition },
  ): Promise<SearchResult>;
  /** Calls back whenever settling may have come nearer. */
  settling(process: HeldProcess, wake: () => void): () => void;
  /** A port the process or a descendant listens on: the one asked for, or any. */
  listening(process: HeldProcess, port: number | undefined): number | undefined;
}

type TextCondition = Extract<Condition, { kind: 'text' | 'pattern' }>;

export interface Watch {
  /** The verdict as things stand, or undefined while it is open. */
  look(): Verdict | undefined;
  stop(): void;
}

const MET: Verdict = { met: true };
const NEVER: Verdict = { met: false };
const nothing = (): void => undefined;

export function watch(
  process: HeldProcess,
  condition: Condition,
  tools: ConditionTools,
  wake: () => void,
): Watch {
  switch (condition.kind) {
    case 'exit':
      return { look: () => (process.outcome ? MET : undefined), stop: nothing };
    case 'closed':
      return { look: () => (process.live ? undefined : MET), stop: nothing };
    case 'settled':
      return {
        look: () => (process.settled ? MET : undefined),
        stop: tools.settling(process, wake),
      };
    case 'growth':
      return { look: () => grown(process, condition.after), stop: nothing };
    case 'silence':
      return new SilenceWatch(process, condition.forMs, tools.clock, wake);
    case 'port':
      return new PortWatch(process, condition.port, tools, wake);
    case 'text':
    case 'pattern':
      return new TextWatch(process, condition, tools, wake);
  }
}

function grown(process: HeldProcess, after: number): Verdict | undefined {
  if (process.journal.visibleSeq > after) return MET;
  return process.live ? undefined : NEVER;
}

class SilenceWatch implements Watch {
  private cancel: (() => void) | undefined;
  private readonly process: HeldProcess;
  private readonly forMs: number;
  private readonly clock: Clock;
  private readonly wake: () => void;

  constructor(process: HeldProcess, forMs: number, clock: Clock, wake: () => void) {
    this.process = process;
    this.forMs = forMs;
    this.clock = clock;
    this.wake = wake;
  }

  look(): Verdict | undefined {
    if (!this.process.live) return NEVER;
    const left = this.forMs - this.process.quietMs();
    if (left <= 0) return MET;
    // One timer at a time: when it fires after new output, the next look sets it for what is left then.
    this.cancel ??= this.clock.after(Math.ceil(left), () => {
      this.cancel = undefined;
      this.wake();
    });
    return undefined;
  }

  stop(): void {
    this.cancel?.();
  }
}

/**
 * The kernel tells nobody that a socket began to listen, so while someone waits for it the table is looked at again and
 * again: at first every 50 ms, later every 250 ms, and after every output. One look costs about 3 ms.
 */
class PortWatch implements Watch {
  private cancel: (() => void) | undefined;
  private pauseMs = 50;
  private readonly process: HeldProcess;
  private readonly port: number | undefined;
  private readonly tools: ConditionTools;
  private readonly wake: () => void;

  constructor(
    process: HeldProcess,
    port: number | undefined,
    tools: ConditionTools,
    wake: () => void,
  ) {
    this.process = process;
    this.port = port;
    this.tools = tools;
    this.wake = wake;
  }

  look(): Verdict | undefined {
    if (this.process.settled) return NEVER;
    const port = this.tools.listening(this.process, this.port);
    if (port !== undefined) return { met: true, port };
    this.cancel ??= this.tools.clock.after(this.pauseMs, () => {
      this.cancel = undefined;
      this.wake();
    });
    this.pauseMs = Math.min(250, this.pauseMs * 1.5);
    return undefined;
  }

  stop(): void {
    this.cancel?.();
  }
}

class TextWatch implements Watch {
  private from: { from: number } | { resume: SearchPosition };
  private searchedTo = -1;
  private searching = false;
  private stopped = false;
  private hit: SearchHit | undefined;
  private failure: unknown;
  private readonly process: HeldProcess;
  private readonly condition: TextCondition;
  private readonly tools: ConditionTools;
  private readonly wake: () => void;

  constructor(
    process: HeldProcess,
    condition: TextCondition,
    tools: ConditionTools,
    wake: () => void,
  ) {
    this.process = process;
    this.condition = condition;
    this.tools = tools;
    this.wake = wake;
    this.from = { from: condition.from ?? 0 };
  }

  look(): Verdict | undefined {
    if (this.failure !== undefined) throw this.failure;
    if (this.hit) return { met: true, hit: this.hit };
    if (this.searching) return undefined;
    if (this.searchedTo < this.process.journal.visibleOffset) {
      void this.searchOn();
      return undefined;
    }
    return this.process.live ? undefined : NEVER;
  }

  stop(): void {
    this.stopped = true;
  }

  private async searchOn(): Promise<void> {
    this.searching = true;
    try {
      const result = await this.tools.search(this.process, this.condition, this.from);
      [this.hit] = result.hits;
      this.from = { resume: result.resume };
      this.searchedTo = result.searchedTo;
    } catch (error) {
      this.failure = error;
    }
    this.searching = false;
    if (!this.stopped) this.wake();
  }
}

export function metOf(
  process: HeldProcess,
  index: number,
  kind: Condition['kind'],
  verdict: Verdict,
): Met {
  const hit = verdict.met ? verdict.hit : undefined;
  const port = verdict.met ? verdict.port : undefined;
  return {
    id: process.facts.id,
    index,
    kind,
    met: verdict.met,
    after: process.journal.visibleSeq,
    offset: process.journal.visibleOffset,
    ...(hit && { match: hit.match, line: hit.line, lineOffset: hit.offset }),
    ...(port !== undefined && { port }),
    process: process.info(),
  };
}
