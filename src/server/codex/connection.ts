// One codex connection: the handshake, then requests, each on its own, so that nothing waits behind a long poll. What
// holds for its session ends with it; the session itself does not.

import { setMaxListeners } from 'node:events';
import type { Clock } from '../../base/clock.ts';
import { HoldfastError, errors } from '../../protocol/errors.ts';
import type { HostApi } from '../../protocol/host-api.ts';
import type { Caller } from '../http/gate.ts';
import {
  errorText,
  MalformedMessage,
  notificationText,
  parseMessage,
  resultText,
  type Message,
} from './message.ts';
import { familyOf, infoOf, methodTable } from './methods.ts';
import { Fields } from './params.ts';
import { Processes } from './process/processes.ts';
import {
  RpcError,
  rpcCodes,
  type CodexSession,
  type CodexSurroundings,
  type MethodTable,
} from './rpc.ts';
import type { SandboxTools } from './sandbox/sandbox.ts';
import type { Attached, Sessions } from './sessions.ts';
import type { Wire, WireListener } from './wire/wire.ts';

export interface CodexOptions {
  readonly host: HostApi;
  readonly clock: Clock;
  readonly sessions: Sessions;
  readonly surroundings: CodexSurroundings;
  /** The state directory, which scoped tokens never reach. */
  readonly home: string;
  readonly keepMs: number;
  readonly graceMs: number;
  readonly sandbox: SandboxTools;
  /** One request after the other, in the order in which they came. */
  readonly serial: boolean;
  readonly countStart: (caller: Caller) => void;
  readonly report: (message: string) => void;
}

/** Requests of one connection under way at once: far beyond the real client's 1024. */
const MOST_REQUESTS = 10_000;
/** When more than this waits for its turn, the client is read from again only after all of it was handled. */
const MOST_WAITING_BYTES = 1024 * 1024;
const RESUMED_ELSEWHERE = 'session has been resumed by another connection';

type Request = Extract<Message, { kind: 'request' }>;

export class CodexConnection implements WireListener {
  private readonly options: CodexOptions;
  private readonly caller: Caller;
  private readonly wire: Wire;
  private readonly session: CodexSession;
  private readonly over = new AbortController();
  private readonly cleanups = new Set<() => void>();
  private attached: Attached | undefined;
  private methods: MethodTable | undefined;
  private initialized = false;
  private lost = false;
  private ending = false;
  private running = 0;
  /** Set while what comes must wait its turn: during the handshake, or always when serial. */
  private turn: Promise<void> | undefined;
  private readonly waiting: (Message | MalformedMessage)[] = [];
  private waitingBytes = 0;

  /** `wire` is made for this connection, which listens to it. */
  constructor(options: CodexOptions, caller: Caller, wire: (listener: WireListener) => Wire) {
    this.options = options;
    this.caller = caller;
    // One listener per call under way.
    setMaxListeners(0, this.over.signal);
    this.wire = wire(this);
    this.session = this.asSession();
  }

  received(text: string): void {
    if (this.over.signal.aborted && !this.lost) return;
    // Its session is gone, and it has been told: there is nothing left to talk about.
    if (this.lost) {
      this.wire.drop();
      return;
    }
    const message = parsed(text);
    if (!this.turn) {
      this.handle(message);
      return;
    }
    this.waiting.push(message);
    this.waitingBytes += text.length;
    if (this.waitingBytes > MOST_WAITING_BYTES) this.wire.hold(true);
  }

  ended(): void {
    this.ending = true;
    this.release();
    void this.attached?.detach();
  }

  /** Ends the session too, and its processes: for a transport that cannot be resumed. */
  async finish(): Promise<void> {
    this.ending = true;
    this.release();
    await this.attached?.detach(true);
  }

  private release(): void {
    this.over.abort();
    for (const cleanup of this.cleanups) cleanup();
    this.cleanups.clear();
  }

  private malformed({ message }: MalformedMessage): RpcError {
    const { source } = this.wire;
    return new RpcError(rpcCodes.refused, `failed to parse ${source}: ${message}`);
  }

  private handle(message: Message | MalformedMessage): void {
    if (message instanceof MalformedMessage)
      this.wire.send(errorText('-1', this.malformed(message)));
    else if (message.kind === 'request') {
      const work = this.request(message);
      if (message.method === 'initialize' || this.options.serial) this.takeTurn(work);
    } else if (
      message.kind === 'notification' &&
      message.method === 'initialized' &&
      this.attached
    ) {
      this.initialized = true;
    } else this.wire.drop();
  }

  private takeTurn(work: Promise<void>): void {
    this.turn = work.finally(() => this.turnOver());
  }

  private turnOver(): void {
    this.turn = undefined;
    for (let next = this.waiting.shift(); next; next = this.waiting.shift()) {
      this.handle(next);
      if (this.turn) return;
    }
    if (this.waitingBytes > MOST_WAITING_BYTES) this.wire.hold(false);
    this.waitingBytes = 0;
  }

  private async request(request: Request): Promise<void> {
    const { id, method, params } = request;
    this.running += 1;
    try {
      if (this.running > MOST_REQUESTS)
        throw new RpcError(rpcCodes.refused, `${MOST_REQUESTS} requests are under way`);
      const result =
        method === 'initialize' ? await this.initialize(params) : await this.call(method, params);
      if (!this.ending) this.wire.send(resultText(id, result));
    } catch (error) {
      if (!this.ending) this.wire.send(errorText(id, this.problem(error)));
    } finally {
      this.running -= 1;
    }
  }

  private call(method: string, params: unknown): Promise<unknown> {
    const family = familyOf(method);
    if (family !== undefined && !this.initialized) {
      const missing = this.attached ? 'send initialized' : 'call initialize';
      throw new RpcError(rpcCodes.refused, `client must ${missing} before using ${family} methods`);
    }
    const found =
      this.methods && Object.hasOwn(this.methods, method) ? this.methods[method] : undefined;
    // The peer's own sentence, which clients compare.
    if (!found)
      throw new RpcError(
        rpcCodes.unknownMethod,
        `exec-server stub does not implement \`${method}\` yet`,
      );
    return found(params, this.session);
  }

  private async initialize(params: unknown): Promise<unknown> {
    if (this.attached)
      throw new RpcError(rpcCodes.refused, 'initialize may only be sent once per connection');
    const fields = new Fields(params, 'struct InitializeParams');
    fields.text('clientName');
    const resume = fields.optionalText('resumeSessionId');
    const { sessions, surroundings, report } = this.options;
    const holder = {
      owner: this.caller.admin ? undefined : this.caller.owner,
      alive: () => this.wire.alive(),
      lose: () => this.lose(),
    };
    const attached = await (resume === undefined
      ? sessions.open(holder)
      : sessions.resume(resume, holder));
    this.attached = attached;
    // The connection may have ended meanwhile.
    if (this.ending) void attached.detach();
    const { host, clock, keepMs, graceMs, sandbox, countStart } = this.options;
    const processes = new Processes({
      host,
      clock,
      owner: attached.owner,
      wire: this.wire,
      surroundings,
      signal: this.over.signal,
      keepMs,
      graceMs,
      sandbox,
      countStart: () => countStart(this.caller),
      report,
    });
    this.methods = { ...methodTable(surroundings), ...processes.methods };
    if (resume !== undefined) await processes.followAll();
    return { sessionId: attached.id, environmentInfo: infoOf(surroundings) };
  }

  /** One object for as long as the connection lasts: methods may know it again by it. */
  private asSession(): CodexSession {
    return {
      notify: (method, params) => {
        if (!this.over.signal.aborted) this.wire.send(notificationText(method, params));
      },
      room: () => this.wire.room(),
      onClose: (cleanup) => {
        this.cleanups.add(cleanup);
        return () => this.cleanups.delete(cleanup);
      },
      gone: this.over.signal,
      admin: this.caller.admin,
      home: this.options.home,
    };
  }

  private lose(): void {
    this.lost = true;
    this.release();
  }

  private problem(error: unknown): RpcError {
    if (this.lost) return new RpcError(rpcCodes.refused, RESUMED_ELSEWHERE);
    if (error instanceof RpcError) return error;
    if (error instanceof HoldfastError) return new RpcError(errors[error.code].rpc, error.message);
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.options.report(`unexpected: ${text}`);
    return new RpcError(rpcCodes.failed, 'Something went wrong inside the server.');
  }
}

/** What is no message waits its turn like one, so that its refusal stands where it belongs. */
function parsed(text: string): Message | MalformedMessage {
  try {
    return parseMessage(text);
  } catch (error) {
    if (error instanceof MalformedMessage) return error;
    throw error;
  }
}
