// The link: HostApi over the keeper's socket. Calls run concurrently; each is answered once, or fails with `keeper_lost`
// when the socket closes. Closing the link ends no process.

import { connect, type Socket } from 'node:net';
import type { CancelSignal } from '../base/cancel-signal.ts';
import { systemClock } from '../base/clock.ts';
import { errnoOf } from '../base/disk.ts';
import { isStopped, PeerWatch, whyStill } from '../system/peer-watch.ts';
import type { ExtentPage } from '../host/process/read-events.ts';
import { abortedError } from '../protocol/cancellation.ts';
import { fromErrorShape, HoldfastError } from '../protocol/errors.ts';
import {
  EVERYONE,
  type CallerOrigin,
  type CloseReport,
  type HostApi,
  type Owner,
  type Page,
} from '../protocol/host-api.ts';
import { operationNames, type OperationName } from '../protocol/operation-names.ts';
import type { Delivery } from './borrowed-socket.ts';
import { FrameReader, sendFrame } from './frames.ts';
import {
  PROTOCOL_VERSION,
  type Answer,
  type Cancel,
  type Request,
  type StopParams,
  type Welcome,
} from './messages.ts';
import { ExtentReader } from './extent-reader.ts';

export type KeeperLink = HostApi & {
  readonly keeper: Welcome['welcome'];
  /** Resolves when the keeper has answered a caller on its own connection; absent if the keeper cannot. */
  readonly deliver?: (owner: Owner, delivery: Delivery, signal: CancelSignal) => Promise<unknown>;
  /** Has the keeper tell at once which deliveries are done, which it would do within a millisecond. */
  readonly hurry?: () => void;
  /** Says whether a program, which the caller holds, came from a process of this keeper; absent when it cannot say. */
  readonly origin?: (pid: number) => Promise<CallerOrigin>;
  /** Starts a server that speaks for every owner, and answers with what it says of itself; absent when it cannot. */
  readonly serve?: () => Promise<unknown>;
  /** Ends every process and the keeper, and reports what could not be ended. */
  stop(graceMs?: number): Promise<CloseReport>;
  /** Resolves when the connection has closed. */
  readonly ended: Promise<void>;
};

/** Connects to a running keeper; ENOENT and ECONNREFUSED mean that there is none. `pid`: the keeper's, if known. */
export async function openLink(path: string, pid?: number): Promise<KeeperLink> {
  const connection = new RpcConnection(await connected(path), pid);
  const keeper = await connection.welcome;
  if (keeper.protocol !== PROTOCOL_VERSION) {
    connection.close();
    throw new HoldfastError(
      'keeper_too_old',
      `The running keeper (${keeper.version}, pid ${keeper.pid}) speaks protocol ${keeper.protocol}, this program ${PROTOCOL_VERSION}.`,
      { keeperVersion: keeper.version, keeperPid: keeper.pid },
    );
  }
  return linkOver(connection, keeper);
}

function linkOver(connection: RpcConnection, keeper: Welcome['welcome']): KeeperLink {
  const known = new Set(keeper.operations);
  const call = (op: OperationName) => (owner: Owner, params: unknown, signal?: CancelSignal) => {
    if (known.has(op)) return connection.call({ op, owner, params }, signal);
    const problem = `The running keeper (${keeper.version}, pid ${keeper.pid}) does not know the operation "${op}".`;
    return Promise.reject(
      new HoldfastError('keeper_too_old', problem, {
        keeperVersion: keeper.version,
        keeperPid: keeper.pid,
      }),
    );
  };
  const calls = Object.fromEntries(operationNames.map((name) => [name, call(name)]));
  const extents = new ExtentReader();
  return {
    ...(calls as unknown as Omit<HostApi, 'close'>),
    read: (owner, params, signal) =>
      extents.readPage((near) => {
        const request = { op: 'read', owner, params, near } as const;
        return connection.call(request, signal) as Promise<Page | ExtentPage>;
      }),
    ...(known.has('deliver') && {
      deliver: (owner, params, signal) => connection.call({ op: 'deliver', owner, params }, signal),
      // It does so before it handles any request.
      hurry: () => connection.ping(),
    }),
    ...(known.has('origin') && {
      origin: (pid) =>
        connection.call({
          op: 'origin',
          owner: EVERYONE,
          params: { pid },
        }) as Promise<CallerOrigin>,
    }),
    ...(known.has('serve') && {
      serve: () => connection.call({ op: 'serve', owner: EVERYONE, params: {} }),
    }),
    keeper,
    ended: connection.ended,
    stop: async (graceMs) => {
      const params: StopParams = graceMs === undefined ? {} : { graceMs };
      const report = (await connection.call({
        op: 'stop',
        owner: '*',
        params,
      })) as Partial<CloseReport>;
      await connection.ended;
      // An older keeper sends no report.
      return { ended: 0, survivors: [], problems: [], ...report };
    },
    close: async () => {
      connection.close();
      await connection.ended;
    },
  };
}

function connected(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('connect', () => resolve(socket));
    socket.once('error', reject);
  });
}

interface Call {
  /** The keeper answers on another connection, and may do so after it was stopped and continued. */
  readonly delivers: boolean;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: HoldfastError) => void;
  readonly forget: () => void;
}

/** One socket: sends requests and matches answers by number. */
class RpcConnection {
  readonly welcome: Promise<Welcome['welcome']>;
  readonly ended: Promise<void>;
  private readonly socket: Socket;
  private readonly reader = new FrameReader();
  private readonly calls = new Map<number, Call>();
  private lastId = 0;
  private welcomed: (welcome: Welcome['welcome']) => void = () => undefined;
  private unwelcome: (error: HoldfastError) => void = () => undefined;
  private problem = 'the connection ended';
  private pid: number | undefined;
  private readonly watch: PeerWatch;
  private welcomeDue = true;
  /** The keeper does not answer: calls are refused until it sends something, or a stopped keeper is continued. */
  private unresponsive: 'stopped' | 'silent' | undefined;

  constructor(socket: Socket, pid: number | undefined) {
    this.socket = socket;
    this.pid = pid;
    this.watch = new PeerWatch({
      clock: systemClock,
      owes: () => this.welcomeDue || this.unresponsive !== undefined || this.calls.size > 0,
      ping: () => this.ping(),
      pid: () => this.pid,
      silent: () => this.silent(),
    });
    this.watch.expect();
    this.welcome = new Promise((resolve, reject) => {
      this.welcomed = resolve;
      this.unwelcome = reject;
      socket.once('close', () => reject(this.lost()));
    });
    // The next call reports a link that closed before the welcome.
    this.welcome.catch(() => undefined);
    this.ended = new Promise((resolve) => {
      socket.once('close', () => resolve(this.close()));
    });
    socket.on('data', (chunk: Buffer) => this.received(chunk));
    socket.on('error', (error) => {
      this.problem = errnoOf(error) ?? error.message;
    });
  }

  call(request: Omit<Request, 'id'>, signal?: CancelSignal): Promise<unknown> {
    if (signal?.aborted) return Promise.reject(abortedError());
    if (this.socket.destroyed) return Promise.reject(this.lost());
    if (this.isUnresponsive()) return Promise.reject(this.notAnswering());
    const id = ++this.lastId;
    this.watch.expect();
    return new Promise((resolve, reject) => {
      const cancel = (): void => this.send({ cancel: id });
      const forget = (): void => signal?.removeEventListener('abort', cancel);
      // Before the call is registered: it throws for a request that is too large.
      this.send({ id, ...request });
      signal?.addEventListener('abort', cancel);
      this.calls.set(id, { resolve, reject, forget, delivers: request.op === 'deliver' });
    });
  }

  close(): void {
    this.socket.destroy();
    this.watch.close();
    for (const call of this.calls.values()) {
      call.forget();
      call.reject(this.lost());
    }
    this.calls.clear();
  }

  private received(chunk: Buffer): void {
    this.watch.heard();
    this.unresponsive = undefined;
    try {
      for (const message of this.reader.push(chunk)) this.handle(message as Welcome | Answer);
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
      this.close();
    }
  }

  private handle(message: Welcome | Answer): void {
    if ('welcome' in message) {
      this.welcomeDue = false;
      this.pid = message.welcome.pid;
      this.welcomed(message.welcome);
      return;
    }
    const call = this.calls.get(message.id);
    if (!call) return;
    this.calls.delete(message.id);
    call.forget();
    if ('error' in message) call.reject(fromErrorShape(message.error));
    else call.resolve(message.result);
  }

  private send(message: Request | Cancel): void {
    if (this.socket.destroyed) return;
    sendFrame(this.socket, message);
  }

  /** An older keeper answers "unsupported", which also shows that it is alive. */
  ping(): void {
    this.send({ id: ++this.lastId, op: 'ping', owner: '*', params: {} });
  }

  /** Rejects the waiting calls. The connection and the deliveries stay, because the keeper may be continued. */
  private silent(): void {
    if (this.welcomeDue) {
      this.unwelcome(this.notAnswering());
      this.close();
      return;
    }
    this.unresponsive = isStopped(this.pid) ? 'stopped' : 'silent';
    for (const [id, call] of this.calls) {
      if (call.delivers) continue;
      this.calls.delete(id);
      call.forget();
      call.reject(this.notAnswering());
      this.send({ cancel: id });
    }
  }

  private isUnresponsive(): boolean {
    if (this.unresponsive === 'stopped' && !isStopped(this.pid)) this.unresponsive = undefined;
    return this.unresponsive !== undefined;
  }

  private notAnswering(): HoldfastError {
    const { pid } = this;
    const why = whyStill(pid);
    const who = pid === undefined ? 'The keeper' : `The keeper (pid ${pid})`;
    return new HoldfastError('not_answering', `${who} does not answer${why ? `: ${why}` : ''}.`, {
      ...(pid !== undefined && { pid }),
    });
  }

  private lost(): HoldfastError {
    return new HoldfastError(
      'keeper_lost',
      `The connection to the keeper is gone: ${this.problem}.`,
    );
  }
}
