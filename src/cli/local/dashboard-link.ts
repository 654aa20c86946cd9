// The link that signs a browser in to the dashboard of a home. The code in it stands behind the "#": browsers send that part
// to nobody.

import { HoldfastError } from '../../protocol/errors.ts';
import { callServer } from './call-server.ts';
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
  const server = await runningServer(home, env);
  const { code, expiresAtMs } = await post<Code>(home, '/v1/sessions/codes', owner);
  return { url: `${addressOf(server)}/#code=${code}${place}`, expiresAtMs };
}

interface Code {
  readonly code: string;
  readonly expiresAtMs: number;
}

interface Share {
  readonly token: string;
  readonly session: { readonly id: string; readonly expiresAtMs: number };
}

/** A link that shows one process and changes nothing, for a while. */
export async function shareLink(
  home: string,
  env: NodeJS.ProcessEnv,
  { owner, id }: { readonly owner: string; readonly id: string },
  forMs: number | undefined,
): Promise<DashboardLink & { readonly share: string }> {
  const server = await runningServer(home, env);
  const path = `/v1/processes/${encodeURIComponent(id)}/share`;
  const { token, session } = await post<Share>(home, path, owner, { forMs });
  const place = `/p/${encodeURIComponent(owner)}/${encodeURIComponent(id)}`;
  const url = `${addressOf(server)}/#share=${token}${place}`;
  return { url, expiresAtMs: session.expiresAtMs, share: session.id };
}

type Running = NonNullable<Awaited<ReturnType<typeof localServer>>>;

async function runningServer(home: string, env: NodeJS.ProcessEnv): Promise<Running> {
  const { connect } = await import('../../client/connect.ts');
  await (await connect({ home, env })).close();
  const server = await localServer(home);
  if (server) return server;
  throw new HoldfastError('keeper_unreachable', `The server of ${home} has just ended.`);
}

/** A server that others can reach too is reached here like any other. */
function addressOf({ url }: Running): string {
  return url.replace(/\/\/(?:0\.0\.0\.0|\[::\])(?=:)/, '//127.0.0.1');
}

function post<T>(home: string, path: string, owner: string | undefined, body?: object): Promise<T> {
  const headers = owner === undefined ? {} : { 'Holdfast-Owner': owner };
  const asked = { method: 'POST', headers, ...(body && { body }) } as const;
  return callServer(home, path, asked) as Promise<T>;
}
