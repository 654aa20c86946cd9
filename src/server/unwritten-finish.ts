// Finishes a response that the keeper has already written to the client's connection: Node must read the next request, but
// write nothing. Node has no call for that, so this relies on how its http module writes; `canFinishUnwritten` checks that
// at start, and where it fails the server answers itself.

import { ServerResponse, type IncomingMessage } from 'node:http';
import { Socket } from 'node:net';

export function finishUnwritten(response: ServerResponse): void {
  const { socket } = response;
  if (!socket || response.destroyed) return;
  const dropBytes = (_bytes: unknown, ...rest: unknown[]): boolean => {
    const written = rest.find((value) => typeof value === 'function');
    if (written) process.nextTick(written);
    return true;
  };
  Object.defineProperty(socket, 'write', { value: dropBytes, configurable: true });
  try {
    response.writeHead(200, { 'Content-Length': 0 });
    response.end();
  } finally {
    Reflect.deleteProperty(socket, 'write');
  }
}

/** Tries it on a socket that goes nowhere: the response must end, and no byte may reach the socket. */
export function canFinishUnwritten(finish = finishUnwritten): boolean {
  const socket = new Socket();
  let bytes = 0;
  socket._write = (chunk: Buffer, _encoding, done) => {
    bytes += chunk.length;
    done();
  };
  socket._writev = (chunks, done) => {
    bytes += chunks.length;
    done();
  };
  const request = { method: 'GET', httpVersionMajor: 1, httpVersionMinor: 1 } as IncomingMessage;
  const response = new ServerResponse(request);
  try {
    response.assignSocket(socket);
    finish(response);
    return response.writableEnded && bytes + socket.writableLength + response.writableLength === 0;
  } catch {
    return false;
  } finally {
    response.detachSocket(socket);
    socket.destroy();
  }
}
