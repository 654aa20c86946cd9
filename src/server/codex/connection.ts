// One codex connection: the handshake, then requests, which run concurrently so that none waits behind a long poll. The
// session outlives the connection.

import { setMaxListeners } from 'node:events';
import type { Clock } from '../../base/clock.ts';
import { strictest } from '../../host/limits/ceilings.ts';
import type { OwnerPolicies } from '../../host/limits/owner-policies.ts';
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
import { familyOf, describeEnvironment, methodTable } from './methods.ts';
import { Fields } from './params.ts';
import { SessionProcesses } from './process/processes.ts';
import {
  RpcError,
  rpcCodes,
  type CodexSession,
  type CodexSurroundings,
  type MethodTable,
} from './rpc.ts';
import type { SandboxTools } from './sandbox/sandbox.ts';
import type { SessionLease, Sessions } from './sessions.ts';
import type { Wire, WireListener } from './wire/wire.ts';

export interface CodexOptions {
  readonly host: HostApi;
  readonly clock: Clock;
  readonly sessions: Sessions;
  readonly surroundings: CodexSurroundings;
  /** The state directory, which scoped tokens cannot reach. */
  readonly home: string;
  /** What the tokens of each owner allow. */
  readonly policies: OwnerPolicies;
  readonly keepMs: number;
  readonly graceMs: number;
  readonly sandbox: SandboxTools;
  /** Handles requests one after the other, in order. */
  readonly serial: boolean;
  readonly countStart: (caller: Caller) => void;
  readonly report: (message: string) => void;
}

/** Concurrent requests of one connection: far above the real client's 1024. */
const MAX_REQUESTS = 10_000;
/** When more than this waits for its turn, the client is read again only after all of it was handled. */
const MAX_WAITING_BYTES = 1024 * 1024;
const RESUMED_ELSEWHERE = 'session has been resumed by another connection';

type Request = Extract<Message, { kind: 'request' }>;

export class CodexConnection implements WireListener {
  private readonly options: CodexOptions;
  private readonly caller: Caller;
  private readonly wire: Wire;
  private readonly session: CodexSession;
  private readonly closing = new AbortController();
  private readonly cleanups = new Set<() => void>();
  private lease: SessionLease | undefined;
  private methods: MethodTable | undefined;
  private initialized = false;
  private lost = false;
  private ending = false;
  private running = 0;
  /** Set while messages must wait for their turn: during the handshake, or always when serial. */
  private turn: Promise<void> | undefined;
  private readonly waiting: (Message | MalformedMessage)[] = [];
  private waitingBytes = 0;

  private readonly sessionPrefix: string | undefined;

  /** `wire` is made for this connection, which listens to it. `sessionPrefix`: of the ids of new sessions. */
  constructor(
    options: CodexOptions,
    caller: Caller,
    wire: (listener: WireListener) => Wire,
    sessionPrefix?: string,
  ) {
    this.sessionPrefix = sessionPrefix;
    this.options = options;
    this.caller = caller;
    // Each concurrent call adds one listener.
    setMaxListeners(0, this.closing.signal);
    this.wire = wire(this);
    this.session = this.createSession();
  }

  received(text: string): void {
    if (this.closing.signal.aborted && !this.lost) return;
    // Its session is lost and the client knows it, so the connection ends.
    if (this.lost) {
      this.wire.drop();
      return;
    }
    const message = parseOrMalformed(text);
    if (!this.turn) {
      this.handle(message);
      return;
    }
    this.waiting.push(message);
    this.waitingBytes += text.length;
    if (this.waitingBytes > MAX_WAITING_BYTES) this.wire.pauseReading(true);
  }

  ended(): void {
    this.ending = true;
    this.release();
    void this.lease?.detach();
  }

  /** Also ends the session and its processes: for a transport that cannot be resumed. */
  async finish(): Promise<void> {
    this.ending = true;
    this.release();
    await this.lease?.detach(true);
  }

  private release(): void {
    this.closing.abort();
    for (const cleanup of this.cleanups) cleanup();
    this.cleanups.clear();
  }

  private malformedError({ message }: MalformedMessage): RpcError {
    const { source } = this.wire;
    return new RpcError(rpcCodes.refused, `failed to parse ${source}: ${message}`);
  }

  private handle(message: Message | MalformedMessage): void {
    if (message instanceof MalformedMessage)
      this.wire.send(errorText('-1', this.malformedError(message)));
    else if (message.kind === 'request') {
      const work = this.request(message);
      if (message.method === 'initialize' || this.options.serial) this.beginTurn(work);
    } else if (message.kind === 'notification' && message.method === 'initialized' && this.lease) {
      this.initialized = true;
    } else this.wire.drop();
  }

  private beginTurn(work: Promise<void>): void {
    this.turn = work.finally(() => this.endTurn());
  }

  private endTurn(): void {
    this.turn = undefined;
    for (let next = this.waiting.shift(); next; next = this.waiting.shift()) {
      this.handle(next);
      if (this.turn) return;
    }
    if (this.waitingBytes > MAX_WAITING_BYTES) this.wire.pauseReading(false);
    this.waitingBytes = 0;
  }

  private async request(request: Request): Promise<void> {
    const { id, method, params } = request;
    this.running += 1;
    try {
      if (this.running > MAX_REQUESTS)
        throw new RpcError(rpcCodes.refused, `${MAX_REQUESTS} requests are under way`);
      const result =
        method === 'initialize' ? await this.initialize(params) : await this.call(method, params);
      if (!this.ending) this.wire.send(resultText(id, result));
    } catch (error) {
      if (!this.ending) this.wire.send(errorText(id, this.toRpcError(error)));
    } finally {
      this.running -= 1;
    }
  }

  private call(method: string, params: unknown): Promise<unknown> {
    const family = familyOf(method);
    if (family !== undefined && !this.initialized) {
      const missing = this.lease ? 'send initialized' : 'call initialize';
      throw new RpcError(rpcCodes.refused, `client must ${missing} before using ${family} methods`);
    }
    const found =
      this.methods && Object.hasOwn(this.methods, method) ? this.methods[method] : undefined;
    // codex's own text: clients compare it.
    if (!found)
      throw new RpcError(
        rpcCodes.unknownMethod,
        `exec-server stub does not implement \`${method}\` yet`,
      );
    return found(params, this.session);
  }

  private async initialize(params: unknown): Promise<unknown> {
    if (this.lease)
      throw new RpcError(rpcCodes.refused, 'initialize may only be sent once per connection');
    const fields = new Fields(params, 'struct InitializeParams');
    fields.text('clientName');
    const resume = fields.optionalText('resumeSessionId');
    const { sessions, surroundings, report } = this.options;
    const holder = {
      owner: this.caller.admin ? undefined : this.caller.owner,
      alive: () => this.wire.alive(),
      lose: () => this.loseSession(),
    };
    const lease = await (resume === undefined
      ? sessions.open(holder, this.sessionPrefix)
      : sessions.resume(resume, holder));
    this.lease = lease;
    // The connection may have ended meanwhile.
    if (this.ending) void lease.detach();
    const { host, clock, keepMs, graceMs, sandbox, countStart } = this.options;
    const processes = new SessionProcesses({
      host,
      clock,
      owner: lease.owner,
      wire: this.wire,
      surroundings,
      signal: this.closing.signal,
      keepMs,
      graceMs,
      sandbox,
      countStart: () => countStart(this.caller),
      ceiling: this.caller.ceiling,
      report,
    });
    this.methods = { ...methodTable(surroundings), ...processes.methods };
    if (resume !== undefined) await processes.followAll();
    return { sessionId: lease.id, environmentInfo: describeEnvironment(surroundings) };
  }

  /** The same object for the whole connection: methods use it as a key. */
  private createSession(): CodexSession {
    return {
      notify: (method, params) => {
        if (!this.closing.signal.aborted) this.wire.send(notificationText(method, params));
      },
      backpressure: () => this.wire.backpressure(),
      onClose: (cleanup) => {
        this.cleanups.add(cleanup);
        return () => this.cleanups.delete(cleanup);
      },
      gone: this.closing.signal,
      admin: this.caller.admin,
      home: this.options.home,
      policy: () =>
        this.caller.admin
          ? undefined
          : strictest(this.options.policies.of(this.caller.owner), this.caller.ceiling),
    };
  }

  private loseSession(): void {
    this.lost = true;
    this.release();
  }

  private toRpcError(error: unknown): RpcError {
    if (this.lost) return new RpcError(rpcCodes.refused, RESUMED_ELSEWHERE);
    if (error instanceof RpcError) return error;
    if (error instanceof HoldfastError) return new RpcError(errors[error.code].rpc, error.message);
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.options.report(`unexpected: ${text}`);
    return new RpcError(rpcCodes.failed, 'Something went wrong inside the server.');
  }
}

/** A malformed message waits for its turn too, so that its error is sent in order. */
function parseOrMalformed(text: string): Message | MalformedMessage {
  try {
    return parseMessage(text);
  } catch (error) {
    if (error instanceof MalformedMessage) return error;
    throw error;
  }
}
