// The requests that a gateway has under way at hosts. An answer that does not come is asked for again; a request is made
// anew only when that is the same as making it once, or when the host is known not to have carried it out.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import type { Clock } from '../../base/clock.ts';
import { abortedError } from '../../protocol/cancellation.ts';
import { fromErrorShape, HoldfastError } from '../../protocol/errors.ts';
import type { Owner } from '../../protocol/host-api.ts';
import { repeatable } from '../../protocol/operation-names.ts';
import { afterWaiting, laneOf, waitsMs } from './call-kinds.ts';
import type { Fabric, Heard } from '../wire/fabric.ts';
import type { HostTable } from './host-table.ts';
import {
  decodeMessage,
  encodeMessage,
  isMemberOperation,
  isTooLong,
  TTL_MS,
  type Ask,
  type FleetOperation,
  type HostAnswer,
  type Note,
} from '../wire/messages.ts';
import { PartCollector, splitParts } from '../wire/parts.ts';
import { readAnswer, subjects, type Lane } from '../wire/subjects.ts';

export interface Request {
  readonly op: FleetOperation;
  readonly owner: Owner;
  readonly params: unknown;
}

interface OpenCall {
  readonly number: number;
  readonly host: string;
  readonly lane: Lane;
  readonly reply: string;
  readonly request: Request;
  readonly begunUs: number;
  readonly waitsMs: number;
  readonly collector: PartCollector;
  /** Of the server that was asked last. */
  boot: string;
  /** When it was asked, or asked again. */
  sentUs: number;
  repeats: number;
  unheard: number;
  settle: (error: HoldfastError | undefined, result?: unknown) => void;
}

const LOOK_MS = 500;
/** A request that has not begun by then never will. */
const FIRST_AGAIN_MS = TTL_MS + 1000;
const AGAIN_MS = 20_000;
/** Right after a host has subscribed, NATS may still say that nobody listens. */
const UNHEARD_MS = 250;
const MOST_UNHEARD = 3;
const MOST_REPEATS = 10;

export class LaneCalls {
  private readonly fabrics: Readonly<Record<Lane, Fabric>>;
  private readonly table: HostTable;
  private readonly clock: Clock;
  private readonly gateway: string;
  private readonly open = new Map<number, OpenCall>();
  private lastNumber = 0;
  private closed = false;
  private cancelLook: (() => void) | undefined;

  constructor(options: {
    readonly fabrics: Readonly<Record<Lane, Fabric>>;
    readonly table: HostTable;
    readonly clock: Clock;
    readonly gateway: string;
  }) {
    const { fabrics, clock, gateway } = options;
    this.fabrics = fabrics;
    this.clock = clock;
    this.gateway = gateway;
    for (const lane of ['control', 'bulk'] as const) {
      fabrics[lane].subscribe(subjects.answersTo(gateway, lane), (heard) => this.heard(heard));
      fabrics[lane].onUp(() => this.askAgain((call) => call.lane === lane));
    }
    this.table = options.table;
    this.lookLater();
  }

  /** Requests under way, of one host or of all. */
  count(host?: string): number {
    if (host === undefined) return this.open.size;
    let count = 0;
    for (const call of this.open.values()) if (call.host === host) count += 1;
    return count;
  }

  call(host: string, request: Request, signal?: CancelSignal): Promise<unknown> {
    if (signal?.aborted) return Promise.reject(abortedError());
    if (this.closed) return Promise.reject(closedError());
    const lane = laneOf(request.op);
    const known = this.table.get(host);
    if (!this.fabrics[lane].connected) return Promise.reject(this.away(lane));
    if (known?.state !== 'here') return Promise.reject(this.unreachable(host));
    const number = ++this.lastNumber;
    const nowUs = this.clock.nowUs();
    return new Promise((resolve, reject) => {
      const cancel = (): void => {
        this.note(call, { cancel: true });
        call.settle(abortedError());
      };
      const call: OpenCall = {
        number,
        host,
        lane,
        reply: subjects.answer(this.gateway, host, lane, number),
        request,
        begunUs: nowUs,
        waitsMs: waitsMs(request.op, request.params),
        collector: new PartCollector(),
        boot: known.beat.boot,
        sentUs: nowUs,
        repeats: 0,
        unheard: 0,
        settle: (error, result) => {
          if (!this.open.delete(number)) return;
          signal?.removeEventListener('abort', cancel);
          if (error) reject(error);
          else resolve(result);
        },
      };
      // Before the call is registered: it throws for a request that is too large.
      this.ask(call);
      this.open.set(number, call);
      signal?.addEventListener('abort', cancel);
    });
  }

  /** A host is back, or its server is another one. */
  returned(host: string): void {
    this.askAgain((call) => call.host === host);
  }

  close(): void {
    this.closed = true;
    this.cancelLook?.();
    for (const call of this.open.values()) {
      this.note(call, { cancel: true });
      call.settle(closedError());
    }
  }

  private ask(call: OpenCall): void {
    const { host, request, reply } = call;
    call.boot = this.table.get(host)?.beat.boot ?? call.boot;
    const nowUs = this.clock.nowUs();
    call.sentUs = nowUs;
    const { op, owner } = request;
    const params = afterWaiting(op, request.params, (nowUs - call.begunUs) / 1000);
    const untilMs = this.table.hostNowMs(host) + TTL_MS;
    const ask: Ask = { op, owner, params, boot: call.boot, untilMs };
    for (const { bytes, part } of splitParts(encodeMessage(ask)))
      this.fabrics[call.lane].publish(subjects.asks(host), bytes, {
        reply,
        ...(part !== undefined && { part }),
      });
  }

  private note(call: OpenCall, note: Note): void {
    const bytes = Buffer.concat(encodeMessage(note));
    this.fabrics[call.lane].publish(subjects.notes(call.host), bytes, { reply: call.reply });
  }

  private heard(message: Heard): void {
    const from = readAnswer(message.subject);
    if (!from) return;
    const call = this.open.get(from.number);
    if (message.nobodyListens) {
      this.table.noteUnheard(from.host);
      if (call?.host === from.host) this.unheard(call);
      return;
    }
    // Text is no frame: another host has let JetStream answer here.
    const isText = message.part === undefined && isTooLong(message.bytes);
    if (call?.host !== from.host || isText) return;
    try {
      const whole = call.collector.add(message);
      if (message.part !== undefined && !whole) this.note(call, { credit: 1 });
      if (whole) this.answered(call, decodeMessage(whole) as HostAnswer);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const problem = `The host "${call.host}" answered what is no answer: ${why}`;
      call.settle(new HoldfastError('internal', problem, { host: call.host }));
    }
  }

  private answered(call: OpenCall, answer: HostAnswer): void {
    if ('result' in answer) call.settle(undefined, answer.result);
    else if ('error' in answer) call.settle(fromErrorShape(answer.error));
    else if ('late' in answer) this.repeat(call, false);
    else this.repeat(call, answer.done || answer.boot !== call.boot);
  }

  /** `unclear`: it may have been carried out. */
  private repeat(call: OpenCall, unclear: boolean): void {
    call.repeats += 1;
    const { op, params } = call.request;
    const may = !unclear || isMemberOperation(op) || repeatable(op, params);
    if (may && call.repeats <= MOST_REPEATS) this.ask(call);
    else call.settle(this.unreachable(call.host, unclear));
  }

  /** The request reached nobody. */
  private unheard(call: OpenCall): void {
    call.unheard += 1;
    const state = this.table.get(call.host)?.state;
    const waits = call.waitsMs > 0;
    if (!waits && (state !== 'here' || call.unheard >= MOST_UNHEARD))
      call.settle(this.unreachable(call.host));
    else
      this.clock.after(UNHEARD_MS, () => {
        if (state === 'here' && this.open.has(call.number)) this.askOrContinue(call);
      });
  }

  /** The first request may have been heard after all. */
  private askOrContinue(call: OpenCall): void {
    call.sentUs = this.clock.nowUs();
    this.note(call, { again: true });
  }

  private askAgain(which: (call: OpenCall) => boolean): void {
    for (const call of this.open.values()) if (which(call)) this.askOrContinue(call);
  }

  private look(): void {
    const nowUs = this.clock.nowUs();
    for (const call of this.open.values()) {
      const waitedMs = (nowUs - call.begunUs) / 1000;
      const isHere = this.table.get(call.host)?.state === 'here' || this.table.isDeaf;
      const isOver = waitedMs > call.waitsMs;
      if (!isHere && isOver) call.settle(this.unreachable(call.host, true));
      else if (!this.fabrics[call.lane].connected && isOver && waitedMs > FIRST_AGAIN_MS)
        call.settle(this.away(call.lane));
      else {
        const patience = call.sentUs === call.begunUs ? FIRST_AGAIN_MS : AGAIN_MS;
        if (nowUs - call.sentUs > patience * 1000) this.askOrContinue(call);
      }
    }
  }

  private lookLater(): void {
    this.cancelLook = this.clock.after(LOOK_MS, () => {
      this.look();
      this.lookLater();
    });
  }

  /** `unclear`: the request may have been carried out. */
  private unreachable(host: string, unclear = false): HoldfastError {
    return unreachable(this.table, host, unclear);
  }

  private away(lane: Lane): HoldfastError {
    return new HoldfastError('fabric_degraded', this.fabrics[lane].problem);
  }
}

function unreachable(table: HostTable, host: string, unclear = false): HoldfastError {
  const known = table.get(host);
  const since = known ? ` since ${new Date(known.sinceMs).toISOString()}` : '';
  const states = {
    here: 'did not answer',
    silent: `has sent nothing${since}`,
    cut: `has been disconnected${since}`,
    conflict: 'is a name that two servers use',
    unknown: 'is not known to this gateway',
  };
  const what = states[known?.state ?? 'unknown'];
  const open = unclear ? ' The request may have been carried out.' : '';
  return new HoldfastError('host_unreachable', `The host "${host}" ${what}.${open}`, {
    host,
    ...(known && { state: known.state, sinceMs: known.sinceMs }),
    ...(unclear && { unclear }),
  });
}

function closedError(): HoldfastError {
  return new HoldfastError('host_closed', 'The gateway is going down.');
}
