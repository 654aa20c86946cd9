// The link: HostApi over the keeper's socket. Any number of calls are under way at once; each is answered once, or
// fails with `keeper_lost` when the socket ends. Letting go of the link ends nothing.

import { connect, type Socket } from 'node:net';
import { errnoOf } from '../base/disk.ts';
import type { NearPage } from '../host/grown-process.ts';
import { fromErrorShape, HoldfastError } from '../protocol/errors.ts';
import type { HostApi, Owner, Page } from '../protocol/host-api.ts';
import { operationNames, type OperationName } from '../protocol/operation-names.ts';
import type { Delivery } from './delivery.ts';
import { FrameReader, sendFrame } from './frames.ts';
import {
  PROTOCOL_VERSION,
  type Answer,
  type Cancel,
  type Request,
  type Welcome,
} from './messages.ts';
import { NearReader } from './near-reader.ts';

export type KeeperLink = HostApi & {
  readonly keeper: Welcome['welcome'];
  /** Resolves when the keeper has answered a caller on its own connection; absent when it does not know how. */
  readonly deliver?: (owner: Owner, delivery: Delivery, signal: AbortSignal) => Promise<unknown>;
  /** Ends every process, and the keeper. */
  stop(): Promise<void>;
  /** Resolves when the connection has ended, whoever ended it. */
  readonly ended: Promise<void>;
};

/** Connects to a keeper that is there; ENOENT and ECONNREFUSED mean that none is. */
export async function openLink(path: string): Promise<KeeperLink> {
  const wire = new Wire(await connected(path));
  const keeper = await wire.welcome;
  if (keeper.protocol !== PROTOCOL_VERSION) {
    wire.close();
    throw new HoldfastError(
      'keeper_too_old',
      `The running keeper (${keeper.version}, pid ${keeper.pid}) speaks protocol ${keeper.protocol}, this program ${PROTOCOL_VERSION}.`,
      { keeperVersion: keeper.version, keeperPid: keeper.pid },
    );
  }
  return linkOver(wire, keeper);
}

function linkOver(wire: Wire, keeper: Welcome['welcome']): KeeperLink {
  const known = new Set(keeper.operations);
  const call = (op: OperationName) => (owner: Owner, params: unknown, signal?: AbortSignal) => {
    if (known.has(op)) return wire.call({ op, owner, params }, signal);
    const problem = `The running keeper (${keeper.version}, pid ${keeper.pid}) does not know the operation "${op}".`;
    return Promise.reject(
      new HoldfastError('keeper_too_old', problem, {
        keeperVersion: keeper.version,
        keeperPid: keeper.pid,
      }),
    );
  };
  const calls = Object.fromEntries(operationNames.map((name) => [name, call(name)]));
  const near = new NearReader();
  return {
    ...(calls as unknown as Omit<HostApi, 'close'>),
    read: (owner, params, signal) =>
      near.page((isNear) => {
        const request = { op: 'read', owner, params, near: isNear } as const;
        return wire.call(request, signal) as Promise<Page | NearPage>;
      }),
    ...(known.has('deliver') && {
      deliver: (owner, params, signal) => wire.call({ op: 'deliver', owner, params }, signal),
    }),
    keeper,
    ended: wire.ended,
    stop: async () => {
      await wire.call({ op: 'stop', owner: '*', params: {} });
      await wire.ended;
    },
    close: async () => {
      wire.close();
      await wire.ended;
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
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: HoldfastError) => void;
  readonly forget: () => void;
}

/** One socket: requests out, answers in, matched by number. */
class Wire {
  readonly welcome: Promise<Welcome['welcome']>;
  readonly ended: Promise<void>;
  private readonly socket: Socket;
  private readonly reader = new FrameReader();
  private readonly calls = new Map<number, Call>();
  private lastId = 0;
  private welcomed: (welcome: Welcome['welcome']) => void = () => undefined;
  private problem = 'the connection ended';

  constructor(socket: Socket) {
    this.socket = socket;
    this.welcome = new Promise((resolve, reject) => {
      this.welcomed = resolve;
      socket.once('close', () => reject(this.lost()));
    });
    // A link that ends before anybody asked for the welcome is told to whoever calls.
    this.welcome.catch(() => undefined);
    this.ended = new Promise((resolve) => {
      socket.once('close', () => resolve(this.close()));
    });
    socket.on('data', (chunk: Buffer) => this.received(chunk));
    socket.on('error', (error) => {
      this.problem = errnoOf(error) ?? error.message;
    });
  }

  call(request: Omit<Request, 'id'>, signal?: AbortSignal): Promise<unknown> {
    if (signal?.aborted)
      return Promise.reject(new HoldfastError('aborted', 'The caller stopped waiting.'));
    if (this.socket.destroyed) return Promise.reject(this.lost());
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      const cancel = (): void => this.send({ cancel: id });
      const forget = (): void => signal?.removeEventListener('abort', cancel);
      signal?.addEventListener('abort', cancel);
      this.calls.set(id, { resolve, reject, forget });
      this.send({ id, ...request });
    });
  }

  close(): void {
    this.socket.destroy();
    for (const call of this.calls.values()) {
      call.forget();
      call.reject(this.lost());
    }
    this.calls.clear();
  }

  private received(chunk: Buffer): void {
    try {
      for (const message of this.reader.push(chunk)) this.handle(message as Welcome | Answer);
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
      this.close();
    }
  }

  private handle(message: Welcome | Answer): void {
    if ('welcome' in message) {
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

  private lost(): HoldfastError {
    return new HoldfastError(
      'keeper_lost',
      `The connection to the keeper is gone: ${this.problem}.`,
    );
  }
}
