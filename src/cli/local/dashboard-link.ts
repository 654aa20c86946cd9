// The link that signs a browser in to the dashboard of a home. The code in it stands behind the "#": browsers send that part
// to nobody.

import { request } from 'node:http';
import { fromErrorShape, HoldfastError, type ErrorShape } from '../../protocol/errors.ts';
import { SERVER_SOCKET, socketIn } from '../../system/private-folder.ts';
import { localServer } from './server.ts';

export interface DashboardLink {
  readonly url: string;
  readonly expiresAtMs: number;
}

interface LinkOptions {
  readonly env: NodeJS.ProcessEnv;
  /** Only the processes of this owner. */
  readonly owner?: string | undefined;
  /** What stands behind the "#" once the page is signed in. */
  readonly place?: string;
}

/** Starts the server of the home if none is running. */
export async function dashboardLink(
  home: string,
  { env, owner, place = '' }: LinkOptions,
): Promise<DashboardLink> {
  const { connect } = await import('../../client/connect.ts');
  await (await connect({ home, env })).close();
  const server = await localServer(home);
  if (!server)
    throw new HoldfastError('keeper_unreachable', `The server of ${home} has just ended.`);
  const { code, expiresAtMs } = await askCode(home, owner);
  // A server that others can reach too is reached here like any other.
  const address = server.url.replace(/\/\/(?:0\.0\.0\.0|\[::\])(?=:)/, '//127.0.0.1');
  return { url: `${address}/#code=${code}${place}`, expiresAtMs };
}

function askCode(
  home: string,
  owner: string | undefined,
): Promise<{ readonly code: string; readonly expiresAtMs: number }> {
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        socketPath: socketIn(home, SERVER_SOCKET),
        method: 'POST',
        path: '/v1/sessions/codes',
        headers: { ...(owner !== undefined && { 'Holdfast-Owner': owner }) },
        agent: false,
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (part: string) => {
          text += part;
        });
        response.once('error', reject);
        response.once('end', () => {
          const answer = JSON.parse(text) as {
            code: string;
            expiresAtMs: number;
            error?: ErrorShape;
          };
          if (answer.error) reject(fromErrorShape(answer.error));
          else resolve(answer);
        });
      },
    );
    asked.once('error', reject);
    asked.end();
  });
}
