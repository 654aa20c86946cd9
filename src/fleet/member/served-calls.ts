// The requests that a host carries out for gateways. A request runs once, however often it is asked for: its reply subject
// names it, and a short answer is kept for a while. One that no gateway asks about any more is cancelled.

import type { Clock } from '../../base/clock.ts';
import { Cancellation } from '../../protocol/cancellation.ts';
import { HoldfastError, toErrorShape } from '../../protocol/errors.ts';
import { EVERYONE, type HostApi, type Owner } from '../../protocol/host-api.ts';
import { operationNames } from '../../protocol/operation-names.ts';
import type { Fabric, Heard } from '../wire/fabric.ts';
import {
  decodeMessage,
  encodeMessage,
  isMemberOperation,
  WINDOW_PARTS,
  type Ask,
  type FleetOperation,
  type HostAnswer,
  type MemberOperation,
  type Note,
} from '../wire/messages.ts';
import { PartCollector, splitParts, type Part } from '../wire/parts.ts';
import { readAnswer } from '../wire/subjects.ts';

type MemberCall = (owner: Owner, params: unknown) => Promise<unknown>;

export interface ServedCallsOptions {
  readonly fabric: Fabric;
  readonly clock: Clock;
  readonly host: HostApi;
  readonly name: string;
  readonly boot: string;
  /** What this member does beyond the operations of its host. */
  readonly member?: Readonly<Record<MemberOperation, MemberCall>> | undefined;
  /** Whether gateways may act for an owner here. */
  readonly admits: (owner: Owner) => boolean;
}

/** A gateway asks again every 20 s: after two that were lost it has died. */
const UNASKED_MS = 50_000;
const SWEEP_MS = 5000;
/** Gateways ask again within 6 s when they hear nothing. */
const KEPT_MS = 30_000;
const MAX_KEPT_ANSWER_BYTES = 64 * 1024;
const MAX_KEPT_BYTES = 16 * 1024 * 1024;
/** Above the parked waits that a host admits by default. */
const MOST_RUNNING = 25_000;
/** Of requests that are not complete, and of answers that wait for credit. */
const MAX_HELD_BYTES = 64 * 1024 * 1024;
/** What the owner "*" may do: a gateway that acts for everyone looks, and names an owner to change something. */
const LOOKS = new Set<FleetOperation>([
  'list',
  'changes',
  'get',
  'read',
  'range',
  'text',
  'search',
  'wait',
  'runWait',
  'ports',
  'tree',
  'attention',
  'completions',
  'acknowledge',
  'owners',
  'limits',
  'enforcement',
  'health',
]);
const names = new Set<string>(operationNames);

interface Running {
  readonly cancellation: Cancellation;
  askedUs: number;
}

interface Finished {
  /** Empty once an answer that is not kept has been sent. */
  parts: readonly Part[];
  sent: number;
  readonly bytes: number;
  readonly atUs: number;
}

export class ServedCalls {
  private readonly options: ServedCallsOptions;
  private readonly running = new Map<string, Running>();
  /** By age. */
  private readonly finished = new Map<string, Finished>();
  private readonly incoming = new Map<string, { collector: PartCollector; atUs: number }>();
  private keptBytes = 0;
  private heldBytes = 0;
  private cancelSweep: (() => void) | undefined;

  constructor(options: ServedCallsOptions) {
    this.options = options;
    this.sweepLater();
  }

  get count(): number {
    return this.running.size;
  }

  /** A message on the host's subject of requests. */
  asked(message: Heard): void {
    const { reply } = message;
    const from = readAnswer(reply);
    if (reply === undefined || from?.host !== this.options.name) return;
    const whole = this.collect(reply, message);
    if (!whole) return;
    const running = this.running.get(reply);
    if (running) running.askedUs = this.options.clock.nowUs();
    else if (this.finished.has(reply)) this.sendAgain(reply);
    else this.begin(reply, whole);
  }

  /** A message about a request under way. */
  noted({ reply, bytes }: Heard): void {
    if (reply === undefined || readAnswer(reply)?.host !== this.options.name) return;
    let note: Note;
    try {
      note = decodeMessage(bytes) as Note;
    } catch {
      return;
    }
    const running = this.running.get(reply);
    if ('cancel' in note) {
      running?.cancellation.abort();
      this.forget(reply);
    } else if ('credit' in note) this.sendParts(reply, note.credit);
    else if (running) running.askedUs = this.options.clock.nowUs();
    else this.sendAgain(reply);
  }

  close(): void {
    this.cancelSweep?.();
    for (const { cancellation } of this.running.values()) cancellation.abort();
    this.running.clear();
    this.finished.clear();
    this.incoming.clear();
  }

  private collect(reply: string, { bytes, part }: Heard): Buffer | undefined {
    if (part === undefined) return bytes;
    const atUs = this.options.clock.nowUs();
    const entry = this.incoming.get(reply) ?? { collector: new PartCollector(), atUs };
    this.incoming.set(reply, entry);
    const before = entry.collector.bytes;
    try {
      if (this.heldBytes > MAX_HELD_BYTES) throw tooMuch();
      const whole = entry.collector.add({ bytes, part });
      this.heldBytes += entry.collector.bytes - before;
      if (whole) this.dropIncoming(reply);
      return whole;
    } catch (error) {
      this.dropIncoming(reply);
      this.answer(reply, { error: toErrorShape(error) });
      return undefined;
    }
  }

  private dropIncoming(reply: string): void {
    this.heldBytes -= this.incoming.get(reply)?.collector.bytes ?? 0;
    this.incoming.delete(reply);
  }

  private begin(reply: string, bytes: Buffer): void {
    const { clock, boot } = this.options;
    let ask: Ask;
    try {
      ask = decodeMessage(bytes) as Ask;
    } catch {
      return;
    }
    if (ask.boot !== boot || !(clock.nowUs() / 1000 <= ask.untilMs)) {
      this.send(reply, { late: true, boot });
      return;
    }
    if (this.running.size >= MOST_RUNNING) {
      const problem = `This host carries out ${MOST_RUNNING} requests of gateways already.`;
      this.answer(reply, { error: toErrorShape(new HoldfastError('limit_reached', problem)) });
      return;
    }
    const cancellation = new Cancellation();
    this.running.set(reply, { cancellation, askedUs: clock.nowUs() });
    void this.perform(ask, cancellation).then((answer) => {
      if (this.running.delete(reply) && !cancellation.aborted) this.answer(reply, answer);
    });
  }

  private async perform(ask: Ask, signal: Cancellation): Promise<HostAnswer> {
    const { op, owner, params } = ask;
    try {
      this.check(op, owner);
      const { host, member } = this.options;
      if (isMemberOperation(op)) return { result: await member?.[op](owner, params) };
      const operation = host[op] as (...args: unknown[]) => Promise<unknown>;
      return { result: await operation.call(host, owner, params, signal) };
    } catch (error) {
      return { error: toErrorShape(error) };
    }
  }

  private check(op: FleetOperation, owner: Owner): void {
    const { name, admits, member } = this.options;
    if (!names.has(op) && !(member && isMemberOperation(op)))
      throw new HoldfastError('unsupported', `The host "${name}" does not know "${op}".`);
    if (typeof owner !== 'string' || (owner !== EVERYONE && !admits(owner))) {
      const problem = `The host "${name}" does not work for the owner ${JSON.stringify(owner)}.`;
      throw new HoldfastError('forbidden', problem, { host: name });
    }
    if (owner === EVERYONE && !LOOKS.has(op)) {
      const problem = `A gateway cannot ask for "${op}" in the name of all owners.`;
      throw new HoldfastError('forbidden', problem, { host: name });
    }
  }

  private answer(reply: string, answer: HostAnswer): void {
    const parts = splitParts(encoded(answer));
    releasePage(answer);
    const bytes = parts.reduce((total, { bytes: part }) => total + part.length, 0);
    const tooLarge = this.heldBytes + this.keptBytes + bytes > MAX_HELD_BYTES;
    const sent = tooLarge ? splitParts(encodeMessage({ error: toErrorShape(tooMuch()) })) : parts;
    const kept = tooLarge ? (sent[0]?.bytes.length ?? 0) : bytes;
    const atUs = this.options.clock.nowUs();
    this.finished.set(reply, { parts: sent, sent: 0, bytes: kept, atUs });
    this.keptBytes += kept;
    this.sendParts(reply, WINDOW_PARTS);
    this.dropOldest();
  }

  private sendParts(reply: string, count: number): void {
    const finished = this.finished.get(reply);
    if (!finished) return;
    const { parts } = finished;
    const until = Math.min(parts.length, finished.sent + Math.min(count, WINDOW_PARTS));
    for (; finished.sent < until; finished.sent += 1) {
      const { bytes, part } = parts[finished.sent] as Part;
      this.options.fabric.publish(reply, bytes, part === undefined ? {} : { part });
    }
    if (finished.sent === parts.length && finished.bytes > MAX_KEPT_ANSWER_BYTES) this.empty(reply);
  }

  /** What is large is not kept; that it has been carried out is. */
  private empty(reply: string): void {
    const finished = this.finished.get(reply);
    if (!finished || finished.parts.length === 0) return;
    this.keptBytes -= finished.bytes;
    this.finished.set(reply, { parts: [], sent: 0, bytes: 0, atUs: finished.atUs });
  }

  private sendAgain(reply: string): void {
    const finished = this.finished.get(reply);
    if (!finished || finished.parts.length === 0) {
      this.send(reply, { unknown: true, boot: this.options.boot, done: finished !== undefined });
      return;
    }
    finished.sent = 0;
    this.sendParts(reply, WINDOW_PARTS);
  }

  private send(reply: string, answer: HostAnswer): void {
    this.options.fabric.publish(reply, Buffer.concat(encodeMessage(answer)));
  }

  private forget(reply: string): void {
    this.running.delete(reply);
    this.keptBytes -= this.finished.get(reply)?.bytes ?? 0;
    this.finished.delete(reply);
  }

  private dropOldest(): void {
    const dueUs = this.options.clock.nowUs() - KEPT_MS * 1000;
    for (const [reply, { atUs, parts, sent }] of this.finished) {
      const isOld = atUs < dueUs;
      if (!isOld && this.keptBytes <= MAX_KEPT_BYTES) return;
      if (isOld) this.forget(reply);
      // The rest of the others is still to be sent.
      else if (sent === parts.length) this.empty(reply);
    }
  }

  private sweepLater(): void {
    this.cancelSweep = this.options.clock.after(SWEEP_MS, () => {
      this.sweep();
      this.sweepLater();
    });
  }

  private sweep(): void {
    const nowUs = this.options.clock.nowUs();
    for (const [reply, { askedUs, cancellation }] of this.running) {
      if (nowUs - askedUs < UNASKED_MS * 1000) continue;
      cancellation.abort();
      this.running.delete(reply);
    }
    for (const [reply, { atUs }] of this.incoming)
      if (nowUs - atUs > KEPT_MS * 1000) this.dropIncoming(reply);
    this.dropOldest();
  }
}

/** An answer above the limit of a message becomes an error. */
function encoded(answer: HostAnswer): Buffer[] {
  try {
    return encodeMessage(answer);
  } catch (error) {
    return encodeMessage({ error: toErrorShape(error) });
  }
}

function releasePage(answer: HostAnswer): void {
  if (!('result' in answer)) return;
  const { release } = (answer.result ?? {}) as { release?: () => void };
  release?.();
}

function tooMuch(): HoldfastError {
  const problem = `More than ${MAX_HELD_BYTES} bytes wait for gateways that do not take them.`;
  return new HoldfastError('limit_reached', problem, { retryAfterMs: 1000 });
}
