// One request to the server of a home, on its private socket.

import { request } from 'node:http';
import { errnoOf } from '../../base/disk.ts';
import { fromErrorShape, HoldfastError, type ErrorShape } from '../../protocol/errors.ts';
import { SERVER_SOCKET, socketIn } from '../../system/private-folder.ts';

interface ServerCall {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: object;
}

/** Throws the error that the server answers with. */
export function callServer(
  home: string,
  path: string,
  { method = 'GET', headers = {}, body }: ServerCall = {},
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const socketPath = socketIn(home, SERVER_SOCKET);
    const all = { ...headers, ...(body && { 'Content-Type': 'application/json' }) };
    const how = { socketPath, method, path, headers: all, agent: false };
    const asked = request(how, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => {
        text += part;
      });
      response.once('error', reject);
      response.once('end', () => {
        const answer = JSON.parse(text || '{}') as { error?: ErrorShape };
        if (answer.error) reject(fromErrorShape(answer.error));
        else resolve(answer);
      });
    });
    asked.once('error', (error) => {
      const absent = ['ENOENT', 'ECONNREFUSED'].includes(errnoOf(error) ?? '');
      reject(absent ? new HoldfastError('not_answering', `No server runs in ${home}.`) : error);
    });
    asked.end(body && JSON.stringify(body));
  });
}
