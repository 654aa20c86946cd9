// Asks the local server to answer the queries of a terminal's programs. It answers for the terminals that it knows, and
// this request makes it know one.

import { existsSync } from 'node:fs';
import { request } from 'node:http';
import { SERVER_SOCKET, socketIn } from '../../system/private-folder.ts';
import type { ProcessInfo } from '../../protocol/process.ts';

/** How long the server may take to answer. */
const TIMEOUT_MS = 5000;

export function serverAnswers(
  home: string,
  { id, owner }: Pick<ProcessInfo, 'id' | 'owner'>,
): Promise<boolean> {
  const socketPath = socketIn(home, SERVER_SOCKET);
  if (!existsSync(socketPath)) return Promise.resolve(false);
  const path = `/v1/terminals/${encodeURIComponent(id)}?owner=${encodeURIComponent(owner)}`;
  return new Promise((resolve) => {
    const asked = request({ socketPath, path, timeout: TIMEOUT_MS, agent: false }, (response) => {
      response.resume();
      response.once('close', () => resolve(response.statusCode === 200));
    });
    asked.once('timeout', () => asked.destroy());
    asked.once('error', () => resolve(false));
    asked.end();
  });
}
