// Turns a request into a WebSocket, after it has passed the gate and found its route.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { WebSocket } from 'ws';
import type { SocketRequest, SocketRow } from './router.ts';
import { lazyModules } from '../lazy-modules.ts';

interface Upgrading extends SocketRequest {
  readonly response: ServerResponse;
  readonly head: Buffer;
}

export function wantsSocket({ headers, method }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket';
}

/** Loads what the connection needs; the result changes the protocol. `ws` itself answers a malformed handshake. */
export async function prepareSocket(
  row: SocketRow,
  asked: SocketRequest,
): Promise<(upgrading: Upgrading) => void> {
  if ('relay' in row) {
    const take = await row.relay(asked);
    return ({ request: { socket }, response, head }) => {
      response.detachSocket(socket);
      socket.setNoDelay(true);
      take(socket, head);
    };
  }
  const [{ WebSocketServer }, open] = await Promise.all([lazyModules.webSockets(), row.load()]);
  const server = new WebSocketServer({
    noServer: true,
    // Compression costs memory per connection, and time that loopback does not need to save.
    perMessageDeflate: false,
    clientTracking: false,
    maxPayload: row.maxMessageBytes,
  });
  return ({ request, response, head, ...rest }) => {
    const { socket } = request;
    response.detachSocket(socket);
    socket.setNoDelay(true);
    server.handleUpgrade(request, socket, head, (opened: WebSocket) => {
      try {
        open(opened, { request, ...rest });
      } catch {
        opened.terminate();
      }
    });
  };
}
