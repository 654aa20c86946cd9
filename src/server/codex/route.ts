// The codex route. Its table row is all that a server needs before the first codex client: the dialect is loaded later.

import { HoldfastError } from '../../protocol/errors.ts';
import type { Route, SocketOpener, SocketRelay, SocketRow } from '../http/router.ts';

/** Requests may be as large as the answers that the client accepts. */
const MAX_MESSAGE_BYTES = 72 * 1024 * 1024;

export function codexRoute(path: string, load: () => Promise<SocketOpener>): Route {
  return route(path, { maxMessageBytes: MAX_MESSAGE_BYTES, load });
}

/** Through a gateway: the server of a host has the dialect. */
export function relayedCodexRoute(path: string, relay: SocketRelay): Route {
  return route(path, { relay });
}

function route(path: string, socket: SocketRow): Route {
  return {
    method: 'GET',
    path,
    handler: () => {
      const problem = 'This path takes WebSocket connections only.';
      return Promise.reject(new HoldfastError('invalid_input', problem));
    },
    socket,
  };
}
