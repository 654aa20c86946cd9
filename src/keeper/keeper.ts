// The keeper: a host behind a unix socket. Every request runs on its own, so that no wait holds up another call, and
// answers that a client does not fetch stay bounded: large ones are made only when there is room to send them.

import { createServer, type Server, type Socket } from 'node:net';
import type { Clock } from '../base/clock.ts';
import { Later } from '../base/later.ts';
import { Cancellation } from '../protocol/cancellation.ts';
import { HoldfastError, toErrorShape } from '../protocol/errors.ts';
import type { Host } from '../host/host.ts';
import { BACKLOG } from '../protocol/limits.ts';
import { operations, type Params } from '../protocol/operations.ts';
import { takeConnection, type Delivery, type TakenConnection } from './delivery.ts';
import { FrameReader, sendFrame } from './frames.ts';
import {
  PROTOCOL_VERSION,
  type Answer,
  type Cancel,
  type Request,
  type Welcome,
} from './messages.ts';

export interface KeeperOptions {
  readonly host: Host;
  readonly clock: Clock;
  readonly version: string;
  /** Leaves after this long without a connection and without a live process. */
  readonly idleMs: number;
  /** Everything has been ended: the home can be given up to the next keeper. */
  readonly released: () => void;
  /** Called once, after the last client has its answers. */
  readonly left: () => void;
}

/** Bytes waiting to be sent on one connection before the next large answer is made. */
const ROOM_BYTES = 1024 * 1024;
/** Who was answered on its own connection has the processor first; whoever asked for that is told this much later. */
const DELIVERED_MS = 1;
/** Large answers being made for one connection at a time. */
const LARGE_AT_ONCE = 2;

export class Keeper {
  private readonly options: KeeperOptions;
  private readonly server: Server;
  private readonly connections = new Set<Connection>();
  private cancelIdle: (() => void) | undefined;

  constructor(options: KeeperOptions) {
    this.options = options;
    this.server = createServer((socket) => this.accept(socket));
  }

  /** The socket is 0600 from the moment it exists, whatever umask the children are to inherit. */
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

  async stop(): Promise<void> {
    this.cancelIdle?.();
    this.server.close();
    await this.options.host.close();
    this.options.released();
    await Promise.all(Array.from(this.connections, (connection) => connection.finish()));
    this.options.left();
  }

  private accept(socket: Socket): void {
    const { host, version } = this.options;
    const connection = new Connection(socket, host, {
      stop: () => this.stop(),
      gone: () => this.gone(connection),
    });
    this.connections.add(connection);
    this.cancelIdle?.();
    this.cancelIdle = undefined;
    connection.welcome(version);
  }

  private gone(connection: Connection): void {
    this.connections.delete(connection);
    this.watchIdle();
  }

  private watchIdle(): void {
    if (this.connections.size > 0) return;
    this.cancelIdle?.();
    this.cancelIdle = this.options.clock.after(this.options.idleMs, () => void this.leaveIfIdle());
  }

  private async leaveIfIdle(): Promise<void> {
    const { live } = await this.options.host.health();
    if (this.connections.size > 0) return;
    if (live > 0) this.watchIdle();
    else await this.stop();
  }
}

interface ConnectionEvents {
  readonly stop: () => Promise<void>;
  readonly gone: () => void;
}

class Connection {
  private readonly socket: Socket;
  private readonly host: Host;
  private readonly events: ConnectionEvents;
  private readonly reader = new FrameReader();
  private readonly running = new Map<number, Cancellation>();
  /** Those of them that go on when this connection has ended. */
  private readonly deliveries = new Map<number, TakenConnection>();
  /** Deliveries that are to be told of. */
  private readonly delivered = new Later<number>(DELIVERED_MS, (ids) => this.tellDelivered(ids));
  private makingLarge = 0;
  private readonly turnWaiters: (() => void)[] = [];

  constructor(socket: Socket, host: Host, events: ConnectionEvents) {
    this.socket = socket;
    this.host = host;
    this.events = events;
    socket.on('data', (chunk: Buffer) => this.received(chunk));
    socket.on('drain', () => this.nextTurn());
    // Told by 'close', which follows.
    socket.on('error', () => undefined);
    socket.on('close', () => this.closed());
  }

  welcome(version: string): void {
    const names = [...Object.keys(operations), 'deliver', 'stop'];
    const welcome: Welcome = {
      welcome: { protocol: PROTOCOL_VERSION, version, pid: process.pid, operations: names },
    };
    this.send(welcome);
  }

  /** Sends what waits and closes. */
  finish(): Promise<void> {
    this.delivered.now();
    return new Promise((resolve) => {
      this.socket.once('close', () => resolve());
      this.socket.end();
      this.socket.resume();
    });
  }

  private received(chunk: Buffer): void {
    this.delivered.now();
    try {
      for (const message of this.reader.push(chunk)) this.handle(message as Request | Cancel);
    } catch {
      // Not our protocol: there is no way to answer that the other side would understand.
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
    // Without the request itself, which would be kept for as long as its answer takes.
    void this.answer(id, op, this.perform(request, cancellation.signal));
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
    else if (!this.socket.destroyed) this.send(answer);
    if (op === 'stop') await this.events.stop();
  }

  private perform(request: Request, signal: AbortSignal): Promise<unknown> {
    const { op, owner, params } = request;
    if (op === 'stop') return Promise.resolve({});
    if (op === 'deliver') return this.deliver(request, signal);
    if (!Object.hasOwn(operations, op)) {
      return Promise.reject(
        new HoldfastError(
          'unsupported',
          `This keeper does not know the operation "${op as string}".`,
        ),
      );
    }
    if (op === 'read') return this.page(request, signal);
    if (op === 'range')
      return this.inTurn(signal, () => this.host.range(owner, params as Params<'range'>));
    const operation = this.host[op] as (...args: unknown[]) => Promise<unknown>;
    return operation.call(this.host, owner, params, signal);
  }

  private async page(request: Request, signal: AbortSignal): Promise<unknown> {
    const grown = await this.host.grown(request.owner, request.params as Params<'read'>, signal);
    return this.inTurn(signal, () => (request.near ? grown.nearPage() : grown.page()));
  }

  private async deliver(request: Request, signal: AbortSignal): Promise<unknown> {
    const delivery = request.params as Delivery;
    const { op, params } = delivery;
    const caller = takeConnection(delivery.to);
    this.deliveries.set(request.id, caller);
    try {
      await caller.answer(await this.perform({ ...request, op, params }, signal), delivery);
    } finally {
      this.deliveries.delete(request.id);
      caller.close();
    }
    return {};
  }

  private tellDelivered(ids: readonly number[]): void {
    for (const id of ids) if (!this.socket.destroyed) this.send({ id, result: {} });
  }

  /** What is large is waited for like anything else, but made only when there is room for it. */
  private async inTurn<T>(signal: AbortSignal, make: () => Promise<T>): Promise<T> {
    await this.turn();
    try {
      // Its turn may have come only because the client went away, with every other one of that client's.
      signal.throwIfAborted();
      return await make();
    } finally {
      this.makingLarge -= 1;
      this.nextTurn();
    }
  }

  private turn(): Promise<void> | undefined {
    if (this.hasRoom()) {
      this.makingLarge += 1;
      return undefined;
    }
    return new Promise((resolve) => this.turnWaiters.push(resolve));
  }

  private nextTurn(): void {
    if (!this.hasRoom()) return;
    const next = this.turnWaiters.shift();
    if (!next) return;
    this.makingLarge += 1;
    next();
  }

  private hasRoom(): boolean {
    return this.makingLarge < LARGE_AT_ONCE && this.socket.writableLength < ROOM_BYTES;
  }

  private send(message: Welcome | Answer): void {
    sendFrame(this.socket, message);
  }

  private closed(): void {
    for (const [id, cancellation] of this.running) {
      const caller = this.deliveries.get(id);
      if (caller) caller.watch(() => cancellation.abort());
      else cancellation.abort();
    }
    for (const next of this.turnWaiters.splice(0)) {
      this.makingLarge += 1;
      next();
    }
    this.events.gone();
  }
}
