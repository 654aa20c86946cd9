// Hands a waiting client over to the keeper, which answers on the client's connection itself: sooner, and even if this
// server has been killed or replaced meanwhile. If that is impossible, the server answers.

import { fstatSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import type { CancelSignal } from '../base/cancel-signal.ts';
import { Cancellation } from '../protocol/cancellation.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { Owner } from '../protocol/host-api.ts';
import { loadPosix } from '../system/posix.ts';
import { descriptorOf, socketDescriptorsWork } from '../system/socket-descriptor.ts';
import type { WaitedFor, RemoteDescriptor } from '../keeper/borrowed-socket.ts';
import type { KeeperLink } from '../keeper/link.ts';
import { canFinishUnwritten, finishUnwritten } from './unwritten-finish.ts';
import { JSON_HEADERS } from './http/unread-answers.ts';
import { IDLE_MS } from './http/door.ts';
import type { Exchange } from './http/router.ts';
import type { ReconnectingHost } from './reconnecting-host.ts';

/** Each takes a descriptor of the keeper. More clients wait here and share one request. */
const MAX_HANDED_OVER = 256;
/** As Node would write it. */
const STATUS = 'HTTP/1.1 200 OK\r\n';
const KEPT = `Connection: keep-alive\r\nKeep-Alive: timeout=${IDLE_MS / 1000}\r\n`;

export class Handover {
  /** Also false where Node's internals are not what this relies on. */
  readonly isOn: boolean;
  private readonly host: ReconnectingHost;
  private underWay = 0;
  private closing = false;
  private allowed: KeeperLink | undefined;
  /** The keeper that was not permitted to take our descriptors. */
  private refusedBy: KeeperLink | undefined;

  /** `enabled`: false keeps every client with this server. */
  constructor(host: ReconnectingHost, enabled = true) {
    this.host = host;
    const posix = enabled ? loadPosix() : undefined;
    this.isOn = posix !== undefined && socketDescriptorsWork(posix) && canFinishUnwritten();
  }

  /** From now on connections close because this server ends: waits at the keeper stay there. */
  beginClosing(): void {
    this.closing = true;
  }

  /** True if the keeper has answered; false if this server must. Throws what the operation throws. */
  async tryAnswer(
    exchange: Exchange,
    owner: Owner,
    waitedFor: WaitedFor,
    headers: Readonly<Record<string, string>> = JSON_HEADERS,
  ): Promise<boolean> {
    if (!this.isOn || this.underWay >= MAX_HANDED_OVER) return false;
    const link = await this.host.link();
    const to = connectionOf(exchange);
    if (!to || !link.deliver || link === this.refusedBy) return false;
    this.allow(link);
    this.underWay += 1;
    // Usually it has the answer already, and its next request waits for the keeper to tell us so.
    exchange.onNext(() => link.hurry?.());
    try {
      const delivery = { ...waitedFor, to, head: headOf(exchange.response, headers), kept: KEPT };
      await link.deliver(owner, delivery, this.abortUnlessClosing(exchange));
    } catch (error) {
      return this.failed(error, exchange, link);
    } finally {
      this.underWay -= 1;
    }
    finishUnwritten(exchange.response);
    return true;
  }

  private allow(link: KeeperLink): void {
    if (this.allowed === link) return;
    this.allowed = link;
    loadPosix()?.allowTaking(link.keeper.pid);
  }

  private abortUnlessClosing({ gone }: Exchange): CancelSignal {
    const cancellation = new Cancellation();
    gone.addEventListener('abort', () => {
      if (!this.closing) cancellation.abort();
    });
    return cancellation;
  }

  private failed(error: unknown, { request }: Exchange, link: KeeperLink): boolean {
    if (!(error instanceof HoldfastError)) throw error;
    if (error.code === 'unsupported') {
      if (!request.socket.destroyed) this.refusedBy = link;
      return false;
    }
    if (error.code !== 'keeper_lost') throw error;
    // The keeper may have answered before it was lost, and a client must not be answered twice.
    request.socket.destroy();
    return true;
  }
}

/** Includes the CORS headers of this answer, so that a page of an allowed origin can read it. */
function headOf(response: ServerResponse, headers: Readonly<Record<string, string>>): string {
  const own = [...Object.entries(headers), ...Object.entries(response.getHeaders())];
  return STATUS + own.map(([name, value]) => `${name}: ${String(value)}\r\n`).join('');
}

/** Undefined if another answer must be sent first, or if the connection ends after this one. */
function connectionOf({ request, response }: Exchange): RemoteDescriptor | undefined {
  const { socket } = request;
  const posix = loadPosix();
  const fd = posix && descriptorOf(posix, socket);
  const itsTurn = response.socket === socket && socket.writableLength === 0;
  if (fd === undefined || !itsTurn || !response.shouldKeepAlive) return undefined;
  return { pid: process.pid, fd, inode: fstatSync(fd).ino };
}
