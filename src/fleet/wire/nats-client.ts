// The client of NATS, with a transport whose sockets are closed with it. The client's own one forgets a socket whose server
// has not greeted yet: a program that is closed while it dials a stopped server would never end.

import { createConnection, type Socket } from 'node:net';
import {
  NatsConnectionImpl,
  setTransportFactory,
} from '@nats-io/transport-node/lib/nats-base-client.js';
import type { ConnectionOptions, NatsConnection } from '@nats-io/transport-node';
import { NodeTransport, nodeResolveHost } from '@nats-io/transport-node/lib/node_transport.js';

export function connectNats(options: ConnectionOptions): Promise<NatsConnection> {
  setTransportFactory({ factory: () => new ClosedTransport(), dnsResolveFn: nodeResolveHost });
  return NatsConnectionImpl.connect(options);
}

class ClosedTransport extends NodeTransport {
  private dialled: Socket | undefined;

  override dial({ port, hostname }: Parameters<NodeTransport['dial']>[0]): Promise<Socket> {
    const socket = (this.dialled = createConnection(port, hostname));
    socket.setNoDelay(true);
    return new Promise((resolve, reject) => {
      let problem: Error | undefined;
      socket.on('error', (error) => (problem = error));
      socket.once('connect', () => {
        socket.removeAllListeners();
        resolve(socket);
      });
      socket.once('close', () => reject(problem ?? new Error('The connection was closed.')));
    });
  }

  override async close(error?: Error): Promise<void> {
    await super.close(error);
    if (this.connected) return;
    this.discard();
    this.dialled?.on('error', () => undefined).destroy();
  }
}
