// Handing a caller who waits over to the keeper, which answers on the caller's connection itself: sooner, and also when
// this server has been killed or replaced in the meantime. Where that cannot be done the caller stays with the server.

import { fstatSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Cancellation } from '../protocol/cancellation.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { Owner } from '../protocol/host-api.ts';
import { loadPosix } from '../system/posix.ts';
import type { WaitedFor, Place } from '../keeper/borrowed-socket.ts';
import type { KeeperLink } from '../keeper/link.ts';
import { JSON_HEADERS } from './http/unread-answers.ts';
import { IDLE_MS } from './http/door.ts';
import type { Exchange } from './http/router.ts';
import type { ReconnectingHost } from './reconnecting-host.ts';

/** Each is an open descriptor of the keeper's; a crowd waits here, and shares one question. */
const MOST_AT_ONCE = 256;
const LINES = Object.entries(JSON_HEADERS).map(([name, value]) => `${name}: ${value}\r\n`);
/** As Node would write it. */
const HEAD = `HTTP/1.1 200 OK\r\n${LINES.join('')}`;
const KEPT = `Connection: keep-alive\r\nKeep-Alive: timeout=${IDLE_MS / 1000}\r\n`;

export class Handover {
  private readonly host: ReconnectingHost;
  private underWay = 0;
  private leaving = false;
  private allowed: KeeperLink | undefined;
  /** It may not have our descriptors. */
  private refusedBy: KeeperLink | undefined;

  constructor(host: ReconnectingHost) {
    this.host = host;
  }

  /** From now on connections end because this server does: whoever waits at the keeper stays there. */
  leave(): void {
    this.leaving = true;
  }

  /** True when the keeper has answered; false when this server has to. Throws what the operation does. */
  async answered(exchange: Exchange, owner: Owner, waitedFor: WaitedFor): Promise<boolean> {
    if (this.underWay >= MOST_AT_ONCE) return false;
    const link = await this.host.link();
    const to = connectionOf(exchange);
    if (!to || !link.deliver || link === this.refusedBy) return false;
    this.allow(link);
    this.underWay += 1;
    try {
      const delivery = { ...waitedFor, to, head: headOf(exchange.response), kept: KEPT };
      await link.deliver(owner, delivery, this.unlessLeaving(exchange));
    } catch (error) {
      return this.failed(error, exchange, link);
    } finally {
      this.underWay -= 1;
    }
    finish(exchange.response);
    return true;
  }

  private allow(link: KeeperLink): void {
    if (this.allowed === link) return;
    this.allowed = link;
    loadPosix()?.allowTaking(link.keeper.pid);
  }

  private unlessLeaving({ gone }: Exchange): AbortSignal {
    const cancellation = new Cancellation();
    gone.addEventListener('abort', () => {
      if (!this.leaving) cancellation.abort();
    });
    return cancellation.signal;
  }

  private failed(error: unknown, { request }: Exchange, link: KeeperLink): boolean {
    if (!(error instanceof HoldfastError)) throw error;
    if (error.code === 'unsupported') {
      if (!request.socket.destroyed) this.refusedBy = link;
      return false;
    }
    if (error.code !== 'keeper_lost') throw error;
    // It may have answered before it was lost, and nobody may be answered twice.
    request.socket.destroy();
    return true;
  }
}

/** With what was set for this answer: a page of an allowed origin may read it. */
function headOf(response: ServerResponse): string {
  const own = Object.entries(response.getHeaders());
  return HEAD + own.map(([name, value]) => `${name}: ${String(value)}\r\n`).join('');
}

/** Undefined when another answer has to be sent before, or when this is to be the last one of the connection. */
function connectionOf({ request, response }: Exchange): Place | undefined {
  const { socket } = request;
  const { fd = -1 } =
    (socket as Socket & { readonly _handle?: { readonly fd?: number } })._handle ?? {};
  const itsTurn = response.socket === socket && socket.writableLength === 0;
  if (fd < 0 || !itsTurn || !response.shouldKeepAlive) return undefined;
  return { pid: process.pid, fd, inode: fstatSync(fd).ino };
}

/** Node does what it does behind an answer, the next request of this connection included, and writes nothing. */
function finish(response: ServerResponse): void {
  const { socket } = response;
  if (!socket || response.destroyed) return;
  const unwritten = (_bytes: unknown, ...rest: unknown[]): boolean => {
    const written = rest.find((value) => typeof value === 'function');
    if (written) process.nextTick(written);
    return true;
  };
  Object.defineProperty(socket, 'write', { value: unwritten, configurable: true });
  try {
    response.writeHead(200, { 'Content-Length': 0 });
    response.end();
  } finally {
    Reflect.deleteProperty(socket, 'write');
  }
}
