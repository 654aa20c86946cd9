// The keeper: a host behind a unix socket. Requests run concurrently, so that no wait delays another call. Answers that a
// client does not read use bounded memory (unsent-answers.ts).

import { createServer, type Server, type Socket } from 'node:net';
import type { CancelSignal } from '../base/cancel-signal.ts';
import type { Clock } from '../base/clock.ts';
import { DeferredBatch } from '../base/deferred-batch.ts';
import { Cancellation } from '../protocol/cancellation.ts';
import { HoldfastError, toErrorShape } from '../protocol/errors.ts';
import type { Host, MakeLarge } from '../host/host.ts';
import { loadPosix } from '../system/posix.ts';
import { isReserved } from '../system/descriptor-reserve.ts';
import { descriptorOf } from '../system/socket-descriptor.ts';
import { PosixError } from '../system/posix-library.ts';
import { isShortage } from '../system/proc-table.ts';
import type { CallerOrigin, CloseReport, HostApi, Page } from '../protocol/host-api.ts';
import { BACKLOG } from '../protocol/limits.ts';
import { operations, type Params } from '../protocol/operations.ts';
import { UnsentAnswers } from './unsent-answers.ts';
import { takeConnection, type Delivery, type BorrowedSocket } from './borrowed-socket.ts';
import { writeStream } from './borrowed-stream.ts';
import { FrameReader } from './frames.ts';
import {
  PROTOCOL_VERSION,
  type Answer,
  type Cancel,
  type OriginParams,
  type Request,
  type StopParams,
  type Welcome,
} from './messages.ts';
import type { OwnServer } from './own-server.ts';
import { onlyFromOutside, ownerWithin, scopeOf, type Scope } from './scope.ts';

/** What is served: the host of a home, or all hosts of a fleet. */
export type ServedHost = Omit<HostApi, 'close'> &
  Pick<Host, 'read' | 'readExtent' | 'text' | 'isIdle' | 'shutDown'> & {
    readonly programs: { originOf(pid: number): Promise<CallerOrigin> };
  };

export interface KeeperOptions {
  readonly host: ServedHost;
  readonly clock: Clock;
  readonly version: string;
  /** The server that the keeper itself starts. */
  readonly server: Pick<OwnServer, 'start' | 'is' | 'isSupervised' | 'look' | 'retire' | 'end'>;
  /** Exits after this long without a connection, a live process, or a living descendant. */
  readonly idleMs: number;
  /** Called with the reason when it begins to stop. */
  readonly stopping: (reason: string) => void;
  /** Called when everything has ended that can be ended, to release the home. Must not throw. */
  readonly released: (report: CloseReport) => Promise<void>;
  /** Called once, after the last client has got its answers. */
  readonly left: () => void;
  /** Why no client can end it. */
  readonly refuseStop?: () => HoldfastError;
}

/** After a reply on a borrowed socket the server is informed this much later, so that the client runs first. */
const DELIVERED_MS = 1;
const ALIVE_MS = 60_000;
/** How long a client that does not close its side delays the exit of the keeper. */
const FINISH_MS = 1000;

export class Keeper {
  private readonly options: KeeperOptions;
  private readonly server: Server;
  private readonly connections = new Set<Connection>();
  private cancelIdle: (() => void) | undefined;
  private closing: Promise<CloseReport> | undefined;

  constructor(options: KeeperOptions) {
    this.options = options;
    // Nothing is read before it is known who asks.
    this.server = createServer({ pauseOnConnect: true }, (socket) => this.accept(socket));
  }

  /** The socket has mode 0600 from its creation, whatever umask the children inherit. */
  async listen(path: string): Promise<void> {
    const umask = process.umask(0o177);
    try {
      const listening = new Promise<void>((resolve, reject) => {
        this.server.once('listening', resolve).once('error', reject);
      });
      this.server.listen({ path, backlog: BACKLOG });
      await listening;
    } finally {
      process.umask(umask);
    }
    this.watchIdle();
  }

  /** Ends every process, releases the home, and exits a turn later. All callers get the same report. */
  stop(reason: string, graceMs?: number): Promise<CloseReport> {
    this.closing ??= this.close(reason, graceMs);
    return this.closing;
  }

  private async close(reason: string, graceMs: number | undefined): Promise<CloseReport> {
    this.options.stopping(reason);
    this.cancelIdle?.();
    // Neither the timers of a host nor the closed server keep the event loop alive.
    const alive = setInterval(() => undefined, ALIVE_MS);
    this.server.close();
    // One that is not supervised outlives its keeper, as every server does.
    const { host, server } = this.options;
    if (server.isSupervised) await server.end();
    else server.retire();
    const report = await host.shutDown(graceMs);
    await this.options.released(report);
    // After the answer to the client that asked for the stop.
    setImmediate(() => void this.leave().then(() => clearInterval(alive)));
    return report;
  }

  private async leave(): Promise<void> {
    const { clock, left } = this.options;
    const finishing = Array.from(this.connections, (connection) => connection.finish());
    const late = new Promise<void>((resolve) => clock.after(FINISH_MS, resolve));
    await Promise.race([Promise.all(finishing), late]);
    left();
  }

  private accept(socket: Socket): void {
    const { host, server, refuseStop } = this.options;
    if (usesReserve(socket)) {
      socket.destroy();
      return;
    }
    const connection = new Connection(socket, host, {
      serve: () => server.start(),
      stop: (graceMs) =>
        refuseStop ? Promise.reject(refuseStop()) : this.stop('a client asked for it', graceMs),
      gone: () => this.gone(connection),
    });
    this.connections.add(connection);
    this.cancelIdle?.();
    this.cancelIdle = undefined;
    void this.admit(connection, socket);
  }

  /** Finds out which process connected and what it may do. Closes the connection if that is not possible. */
  private async admit(connection: Connection, socket: Socket): Promise<void> {
    const { host, server, version } = this.options;
    const posix = loadPosix();
    try {
      if (!posix) throw new Error('there are no system calls');
      const scope = await scopeOf(posix, socket, async (pid) =>
        server.is(pid) ? { inside: false } : host.programs.originOf(pid),
      );
      if (scope === undefined) socket.destroy();
      else connection.welcome({ version, supervises: server.isSupervised }, scope);
    } catch (error) {
      // No descriptor is free to look.
      if (!isShortage(error) && !(error instanceof PosixError)) throw error;
      socket.destroy();
    }
  }

  private gone(connection: Connection): void {
    this.connections.delete(connection);
    this.options.server.look();
    this.watchIdle();
  }

  private watchIdle(): void {
    if (this.connections.size > 0) return;
    this.cancelIdle?.();
    this.cancelIdle = this.options.clock.after(this.options.idleMs, () => void this.leaveIfIdle());
  }

  private async leaveIfIdle(): Promise<void> {
    const isIdle = await this.options.host.isIdle();
    if (this.connections.size > 0) return;
    if (isIdle) await this.stop('no process is left');
    else this.watchIdle();
  }
}

/** Connections may use half of the reserved descriptors; the other half is needed to end processes. */
function usesReserve(socket: Socket): boolean {
  const posix = loadPosix();
  return posix !== undefined && isReserved(posix, descriptorOf(posix, socket) ?? -1, 0.5);
}

interface ConnectionEvents {
  readonly serve: () => Promise<unknown>;
  readonly stop: (graceMs?: number) => Promise<CloseReport>;
  readonly gone: () => void;
}

class Connection {
  private readonly socket: Socket;
  private readonly host: ServedHost;
  private readonly events: ConnectionEvents;
  private readonly reader = new FrameReader();
  private readonly running = new Map<number, Cancellation>();
  /** Running requests that continue after this connection has closed. */
  private readonly deliveries = new Map<number, BorrowedSocket>();
  /** Finished deliveries that the server must be informed of. */
  private readonly delivered = new DeferredBatch<number>(DELIVERED_MS, (ids) =>
    this.sendDelivered(ids),
  );
  private readonly answers: UnsentAnswers;
  private scope: Scope = { inside: true };

  constructor(socket: Socket, host: ServedHost, events: ConnectionEvents) {
    this.socket = socket;
    this.host = host;
    this.events = events;
    this.answers = new UnsentAnswers(socket);
    // 'close' follows and handles it.
    socket.on('error', () => undefined);
    socket.on('close', () => this.closed());
  }

  /** From now on requests are read. */
  welcome(
    { version, supervises }: { readonly version: string; readonly supervises: boolean },
    scope: Scope,
  ): void {
    this.scope = scope;
    const names = [...Object.keys(operations), 'deliver', 'origin', 'ping', 'serve', 'stop'];
    const about = { protocol: PROTOCOL_VERSION, version, pid: process.pid, operations: names };
    const more = { ...(scope !== 'all' && { scope }), ...(supervises && { supervises }) };
    const welcome: Welcome = { welcome: { ...about, ...more } };
    this.answers.send(welcome);
    this.socket.on('data', (chunk: Buffer) => this.received(chunk));
    this.socket.resume();
  }

  /** Sends the waiting answers and closes. */
  finish(): Promise<void> {
    this.delivered.flush();
    this.answers.flush();
    return new Promise((resolve) => {
      this.socket.once('close', () => resolve());
      this.socket.end();
      this.socket.resume();
    });
  }

  private received(chunk: Buffer): void {
    this.delivered.flush();
    try {
      for (const message of this.reader.push(chunk)) this.handle(message as Request | Cancel);
    } catch {
      // Not our protocol: the peer would not understand an answer.
      this.socket.destroy();
    }
  }

  private handle(message: Request | Cancel): void {
    if ('cancel' in message) this.running.get(message.cancel)?.abort();
    else this.run(message);
  }

  private run(request: Request): void {
    const { id, op } = request;
    const cancellation = new Cancellation();
    this.running.set(id, cancellation);
    // `answer` does not get the request, which would stay in memory as long as the answer takes.
    void this.answer(id, op, this.perform(request, cancellation));
  }

  private async answer(id: number, op: Request['op'], result: Promise<unknown>): Promise<void> {
    let answer: Answer;
    try {
      answer = { id, result: await result };
    } catch (error) {
      answer = { id, error: toErrorShape(error) };
    }
    this.running.delete(id);
    if (op === 'deliver' && 'result' in answer) this.delivered.add(id);
    else this.answers.send(answer);
  }

  private async perform(asked: Request, signal: CancelSignal): Promise<unknown> {
    const { op, params } = asked;
    if (op === 'ping') return {};
    const owner = ownerWithin(this.scope, asked.owner);
    const request = { ...asked, owner };
    if (op === 'stop') return this.stop(params as StopParams);
    if (op === 'serve') return this.events.serve();
    if (op === 'origin') return this.origin(params as OriginParams);
    if (op === 'deliver') return this.deliver(request, signal);
    if (!Object.hasOwn(operations, op)) {
      throw new HoldfastError(
        'unsupported',
        `This keeper does not know the operation "${op as string}".`,
      );
    }
    const makeLarge: MakeLarge = (make) => this.answers.make({ owner, signal }, make);
    if (op === 'read') {
      const name = request.near ? 'readExtent' : 'read';
      return this.host[name](owner, params as Params<'read'>, signal, makeLarge);
    }
    if (op === 'text') return this.host.text(owner, params as Params<'text'>, signal, makeLarge);
    if (op === 'range') return makeLarge(() => this.host.range(owner, params as Params<'range'>));
    if (op === 'search') {
      const search = (): Promise<unknown> =>
        this.host.search(owner, params as Params<'search'>, signal);
      return this.answers.search({ owner, signal }, search);
    }
    if (op === 'list') return makeLarge(() => this.host.list(owner, params as Params<'list'>));
    const operation = this.host[op] as (...args: unknown[]) => Promise<unknown>;
    return operation.call(this.host, owner, params, signal);
  }

  private stop({ graceMs }: StopParams): Promise<CloseReport> {
    onlyFromOutside(this.scope, 'end the keeper');
    return this.events.stop(graceMs);
  }

  private origin({ pid }: OriginParams): Promise<CallerOrigin> {
    onlyFromOutside(this.scope, 'ask where others came from');
    return this.host.programs.originOf(pid);
  }

  private async deliver(request: Request, signal: CancelSignal): Promise<unknown> {
    // It takes a descriptor of whichever program is named.
    onlyFromOutside(this.scope, 'have answers delivered');
    const delivery = request.params as Delivery;
    const caller = takeConnection(delivery);
    this.deliveries.set(request.id, caller);
    try {
      if (delivery.op === 'follow') {
        const read = (params: Params<'read'>): Promise<Page> =>
          this.host.read(request.owner, params, signal);
        await writeStream(caller, delivery, read, signal);
        return {};
      }
      const { op, params } = delivery;
      await caller.answer(await this.perform({ ...request, op, params }, signal), delivery);
    } finally {
      this.deliveries.delete(request.id);
      caller.close();
    }
    return {};
  }

  private sendDelivered(ids: readonly number[]): void {
    for (const id of ids) this.answers.send({ id, result: {} });
  }

  private closed(): void {
    for (const [id, cancellation] of this.running) {
      const caller = this.deliveries.get(id);
      if (caller) caller.watch(() => cancellation.abort());
      else cancellation.abort();
    }
    this.answers.close();
    this.events.gone();
  }
}
