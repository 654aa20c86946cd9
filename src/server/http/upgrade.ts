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

/** `ws` itself answers a malformed handshake with 400 or 426. */
export async function becomeSocket(row: SocketRow, upgrading: Upgrading): Promise<void> {
  const { request, response, head, ...asked } = upgrading;
  const socket = request.socket;
  response.detachSocket(socket);
  const { WebSocketServer } = await lazyModules.webSockets();
  const server = new WebSocketServer({
    noServer: true,
    // Compression costs memory per connection, and time that loopback does not need to save.
    perMessageDeflate: false,
    clientTracking: false,
    maxPayload: row.maxMessageBytes,
  });
  socket.setNoDelay(true);
  server.handleUpgrade(request, socket, head, (opened: WebSocket) => {
    try {
      row.open(opened, { request, ...asked });
    } catch {
      opened.terminate();
    }
  });
}
