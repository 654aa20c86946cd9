// A request becomes a WebSocket. It has passed the gate and found its route like any other; here it leaves HTTP.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { WebSocket } from 'ws';
import type { Asked, SocketRow } from './router.ts';
import { lazyModules } from '../lazy-modules.ts';

interface Upgrading extends Asked {
  readonly response: ServerResponse;
  readonly head: Buffer;
}

export function wantsSocket({ headers, method }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket';
}

/** The library answers a handshake that is malformed itself, with 400 or 426. */
export async function becomeSocket(row: SocketRow, upgrading: Upgrading): Promise<void> {
  const { request, response, head, ...asked } = upgrading;
  const socket = request.socket;
  response.detachSocket(socket);
  const { WebSocketServer } = await lazyModules.webSockets();
  const server = new WebSocketServer({
    noServer: true,
    // Compression costs a window of memory per connection, and time that no loopback has to save.
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
