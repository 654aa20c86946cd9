// The conditions that a wait can have. A condition is checked after every change of its process; those that also depend
// on time, a search or the kernel's socket table wake the waiter themselves.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import type { Clock } from '../../base/clock.ts';
import { FairTurns } from '../../base/fair-turns.ts';
import { abortedError, Cancellation } from '../../protocol/cancellation.ts';
import type { Met } from '../../protocol/host-api.ts';
import type { Condition } from '../../protocol/operations.ts';
import type { SearchHit, SearchPosition, SearchResult } from '../../protocol/views.ts';
import type { Matcher } from '../../journal/search/matcher.ts';
import type { Measures } from '../observe/measures.ts';
import type { HeldProcess } from '../process/held-process.ts';
import type { DescendantTracker } from '../descendants/descendant-tracker.ts';
import { PortLooks } from './port-waits.ts';
import { byteSource } from '../process/views.ts';

export type Verdict =
  | { readonly met: true; readonly hit?: SearchHit; readonly port?: number }
  /** It can no longer be met. */
  | { readonly met: false };

export interface ConditionTools {
  readonly clock: Clock;
  /** Finds the first hit in the output, from an offset or from the end of an earlier search. */
  search(
    process: HeldProcess,
    condition: TextCondition,
    from: { from: number } | { resume: SearchPosition },
    signal: CancelSignal,
  ): Promise<SearchResult>;
  /** Calls back whenever the process may have settled. */
  settling(process: HeldProcess, wake: () => void): () => void;
  readonly ports: PortLooks<HeldProcess>;
  /** A wait that began at this time is over. */
  readonly waited: ((begunUs: number) => void) | undefined;
}

interface Tracking {
  readonly measures: Pick<Measures, 'waited'>;
  readonly clock: Clock;
  readonly tracker: DescendantTracker<HeldProcess>;
  /** Exits whose bookkeeping is deferred. */
  readonly exited: { flush(): void };
}

export function conditionTools(
  { clock, tracker, exited, measures }: Tracking,
  matcher: Matcher,
): ConditionTools {
  return {
    clock,
    search: conditionSearch(matcher),
    settling: (process, wake) => {
      // This caller waits for what follows an exit: deferring that would only delay its answer.
      exited.flush();
      return tracker.onChange(process, wake);
    },
    ports: new PortLooks({
      clock,
      listening: (process, port, tables) => tracker.listening(process, port, tables),
    }),
    waited: measures.waited,
  };
}

/** Each reads a block of up to 256 KiB before it waits for the thread that matches. */
const SEARCHES = { atOnce: 64, perOwner: 8, givenUp: abortedError } as const;

/** The search for the first hit of a condition. Few of one owner run at once, however many it waits for. */
function conditionSearch(matcher: Matcher): ConditionTools['search'] {
  const turns = new FairTurns(SEARCHES);
  return (process, condition, from, signal) => {
    const { ignoreCase } = condition;
    const { owner } = process.facts;
    const [pattern, kind] =
      condition.kind === 'text'
        ? [condition.text, 'text' as const]
        : [condition.pattern, 'regex' as const];
    const query = { pattern, kind, ignoreCase, ...from, limit: 1 };
    const search = (): Promise<SearchResult> =>
      matcher.search(byteSource(process.journal), query, { owner, signal });
    return turns.run(owner, search, signal);
  };
}

type TextCondition = Extract<Condition, { kind: 'text' | 'pattern' }>;

export interface Watch {
  /** The verdict now; undefined while it is open. */
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
      return { look: () => grewAfter(process, condition.after), stop: nothing };
    case 'silence':
      return new SilenceWatch(process, condition.forMs, tools.clock, wake);
    case 'port':
      return new PortWatch(process, condition.port, tools, wake);
    case 'text':
    case 'pattern':
      return new TextWatch(process, condition, tools, wake);
  }
}

function grewAfter(process: HeldProcess, after: number): Verdict | undefined {
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
    // One timer at a time: if there was new output when it fires, the next check sets it for the remaining time.
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

class PortWatch implements Watch {
  private readonly process: HeldProcess;
  private readonly port: number | undefined;
  private readonly ports: PortLooks<HeldProcess>;
  private readonly wake: () => void;
  private stopLooking: (() => void) | undefined;
  private found: number | undefined;

  constructor(
    process: HeldProcess,
    port: number | undefined,
    { ports }: ConditionTools,
    wake: () => void,
  ) {
    this.process = process;
    this.port = port;
    this.ports = ports;
    this.wake = wake;
  }

  look(): Verdict | undefined {
    if (this.found !== undefined) return { met: true, port: this.found };
    if (this.process.settled) return NEVER;
    if (this.stopLooking) {
      this.ports.hurry();
      return undefined;
    }
    const { process, port } = this;
    this.found = this.ports.now(process, port);
    if (this.found !== undefined) return { met: true, port: this.found };
    const found = (listening: number): void => {
      this.found = listening;
      this.wake();
    };
    this.stopLooking = this.ports.add({ process, port, found });
    return undefined;
  }

  stop(): void {
    this.stopLooking?.();
  }
}

class TextWatch implements Watch {
  private from: { from: number } | { resume: SearchPosition };
  private searchedTo = -1;
  private searching: Cancellation | undefined;
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
    this.searching?.abort();
  }

  private async searchOn(): Promise<void> {
    const { process, condition, from } = this;
    const searching = (this.searching = new Cancellation());
    try {
      const result = await this.tools.search(process, condition, from, searching);
      [this.hit] = result.hits;
      this.from = { resume: result.resume };
      this.searchedTo = result.searchedTo;
    } catch (error) {
      this.failure = error;
    }
    this.searching = undefined;
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
