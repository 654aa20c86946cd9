// Whether a server answers what programs ask their terminal. It answers for the terminals that it knows; this call makes
// it know one. A socket that nobody listens on any more is no server.

import { existsSync } from 'node:fs';
import { request } from 'node:http';
import { SERVER_SOCKET, socketIn } from '../../system/private-folder.ts';
import type { ProcessInfo } from '../../protocol/process.ts';

/** A server that does not answer for so long is left alone. */
const PATIENCE_MS = 5000;

export function serverAttends(
  home: string,
  { id, owner }: Pick<ProcessInfo, 'id' | 'owner'>,
): Promise<boolean> {
  const socketPath = socketIn(home, SERVER_SOCKET);
  if (!existsSync(socketPath)) return Promise.resolve(false);
  const path = `/v1/terminals/${encodeURIComponent(id)}?owner=${encodeURIComponent(owner)}`;
  return new Promise((resolve) => {
    const asked = request({ socketPath, path, timeout: PATIENCE_MS, agent: false }, (response) => {
      response.resume();
      response.once('close', () => resolve(response.statusCode === 200));
    });
    asked.once('timeout', () => asked.destroy());
    asked.once('error', () => resolve(false));
    asked.end();
  });
}
