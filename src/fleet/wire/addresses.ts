// Addresses of NATS servers, and what is asked of one before it is used.

import { HoldfastError } from '../../protocol/errors.ts';

/** Older servers let any user of an account purge others, or fall over before a login. 2.13 was never mended. */
const OLDEST = { '2.12': 7 } as const;
const OLDEST_MINOR = 14;

/** Of an address in a URL. */
export function isLoopback(hostname: string): boolean {
  const bare = hostname.replace(/^\[|\]$/g, '');
  return bare === 'localhost' || bare === '::1' || /^127(?:\.\d{1,3}){3}$/.test(bare);
}

/** "nats://a:4222,tls://b:4222" */
export function splitServers(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** Beyond this machine only with TLS and an admission. */
export function checkServers(servers: readonly string[], isAdmitted: boolean): void {
  if (servers.length === 0)
    throw new HoldfastError('invalid_input', 'No address of NATS is given.');
  for (const server of servers) checkServer(server, isAdmitted);
}

function checkServer(server: string, isAdmitted: boolean): void {
  const url = parsed(server);
  if (isLoopback(url.hostname)) return;
  if (url.protocol !== 'tls:')
    throw new HoldfastError(
      'forbidden',
      `${server} is not on this machine, and nats:// has no TLS.`,
      {
        remedy: 'Use tls:// and give NATS a certificate.',
      },
    );
  if (isAdmitted) return;
  throw new HoldfastError(
    'forbidden',
    `${server} is not on this machine, and this home has no admission.`,
    {
      remedy: 'Admit the key that "holdfast fleet key" prints with "holdfast fleet admit".',
    },
  );
}

function parsed(server: string): URL {
  try {
    const url = new URL(server);
    if (url.protocol === 'nats:' || url.protocol === 'tls:') return url;
  } catch {
    // Said below.
  }
  const problem = `"${server}" is not an address such as nats://127.0.0.1:4222 or tls://nats.example:4222.`;
  throw new HoldfastError('invalid_input', problem);
}

/** Absent where no address asks for it. */
export function tlsFor(
  servers: readonly string[],
  ca?: string,
): { readonly caFile?: string } | undefined {
  if (!servers.some((server) => server.startsWith('tls:'))) return undefined;
  return ca === undefined ? {} : { caFile: ca };
}

/** Why a server beyond this machine is too old to be trusted. */
export function refuseOldServer({
  version,
  address,
}: {
  readonly version: string;
  readonly address: string;
}): string | undefined {
  const { hostname } = new URL(address.includes('://') ? address : `nats://${address}`);
  const [major = 0, minor = 0, patch = 0] = version.split(/[.-]/).map(Number);
  const mended = `${major}.${minor}` === '2.12' && patch >= OLDEST['2.12'];
  const isNew = major > 2 || (major === 2 && minor >= OLDEST_MINOR);
  if (isLoopback(hostname) || mended || isNew) return undefined;
  return `nats-server ${version} at ${address} has known holes: beyond this machine 2.12.7, 2.14.0 or newer is used.`;
}
