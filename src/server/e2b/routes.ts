// The E2B door at /e2b: its table of routes, and where its clients show their tokens. The rest is loaded when used.
//
// Two ways in. With E2B_API_URL=…/e2b, E2B_SANDBOX_URL=…/e2b/envd and E2B_API_KEY the client makes sandboxes. In debug mode
// it makes none and sends no token, so E2B_SANDBOX_URL=…/e2b/t/TOKEN carries it.

import type { IncomingMessage } from 'node:http';
import { sharePromise } from '../../base/once.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Credential, Dialect, Exchange, Route } from '../http/router.ts';
import { lazyModules } from '../lazy-modules.ts';
import type { E2b } from './e2b.ts';
import { connectError, E2bError, sandboxGone, statusOf } from './errors.ts';
import { sandboxOwner, SandboxStore } from './sandbox-store.ts';
import { SandboxTokens } from './sandbox-tokens.ts';
import type { E2bOptions } from './target.ts';

const PREFIX = '/e2b';
/** Input to a process comes as base64 in one message: 10 MiB of it fit. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
const MAX_START_BYTES = 1024 * 1024;

export function e2bRoutes(options: E2bOptions): Route[] {
  const store = new SandboxStore(options.home, options.host, options.clock);
  const tokens = new SandboxTokens(options.home);
  const open = sharePromise(async () => new (await lazyModules.e2b()).E2b(options, store, tokens));
  const credential = credentialReader(store, tokens);
  const rpc: Dialect = {
    prefix: PREFIX,
    credential,
    encode: (value) => JSON.stringify(value),
    error: (error) => ({ status: statusOf(error), body: connectError(error) }),
  };
  const plain: Dialect = {
    ...rpc,
    error: (error) => {
      const code = statusOf(error);
      return { status: code, body: { code, message: messageOf(error) } };
    },
  };
  const api = (method: Route['method'], path: string): Route => ({
    method,
    path: PREFIX + path,
    dialect: plain,
    handler: async (exchange) => (await open()).controlPlane.answer(method, path, exchange),
  });
  return [
    ...['/envd', '/t/:token'].flatMap((base) => dataRoutes(PREFIX + base, { open, rpc, plain })),
    // Addresses that the client signs lose the path of the base address.
    ...fileRoutes('/files', { open, rpc, plain }).map((route) => ({
      ...route,
      anonymous: true as const,
    })),
    api('POST', '/v2/sandboxes'),
    api('POST', '/sandboxes'),
    api('GET', '/v2/sandboxes'),
    api('GET', '/sandboxes'),
    api('GET', '/sandboxes/:id'),
    api('DELETE', '/sandboxes/:id'),
    api('POST', '/v2/sandboxes/:id/connect'),
    api('POST', '/sandboxes/:id/connect'),
    api('POST', '/sandboxes/:id/resume'),
    api('POST', '/sandboxes/:id/timeout'),
    api('POST', '/sandboxes/:id/refreshes'),
    api('GET', '/sandboxes/:id/metrics'),
    api('GET', '/templates/aliases/:alias'),
  ];
}

interface Loading {
  readonly open: () => Promise<E2b>;
  readonly rpc: Dialect;
  readonly plain: Dialect;
}

function dataRoutes(base: string, { open, rpc, plain }: Loading): Route[] {
  const service = (name: 'process.Process' | 'filesystem.Filesystem'): Route => ({
    method: 'POST',
    path: `${base}/${name}/:method`,
    dialect: rpc,
    body: 'any',
    maxBodyBytes: name === 'process.Process' ? MAX_MESSAGE_BYTES : MAX_START_BYTES,
    handler: async (exchange) => (await open()).call(name, exchange),
  });
  return [
    service('process.Process'),
    service('filesystem.Filesystem'),
    ...fileRoutes(`${base}/files`, { open, rpc, plain }),
    {
      method: 'GET',
      path: `${base}/health`,
      dialect: plain,
      anonymous: true,
      handler: async (exchange) => (await open()).health(exchange),
    },
  ];
}

function fileRoutes(path: string, { open, plain }: Loading): Route[] {
  const row = (
    method: 'GET' | 'POST',
    handler: (exchange: Exchange) => Promise<unknown>,
  ): Route => ({
    method,
    path,
    dialect: plain,
    body: 'stream',
    handler,
  });
  return [
    row('GET', async (exchange) => (await open()).files.download(exchange)),
    row('POST', async (exchange) => (await open()).files.upload(exchange)),
  ];
}

/** `Authorization: Basic` names a user of the sandbox and is no credential. */
function credentialReader(store: SandboxStore, tokens: SandboxTokens) {
  return ({ headers }: IncomingMessage, path: string): Credential => {
    if (path.startsWith(`${PREFIX}/t/`)) return shown(path.split('/')[3]);
    if (!path.startsWith(`${PREFIX}/envd/`)) return shown(headers['x-api-key']);
    const token = headers['x-access-token'];
    if (typeof token !== 'string') return {};
    const id = tokens.sandboxOf(token);
    if (id === undefined)
      throw new HoldfastError('unauthorized', 'The token of the sandbox is not valid.');
    const named = headers['e2b-sandbox-id'];
    if (named !== undefined && named !== id)
      throw new E2bError('not_found', 'There is no such sandbox for this token.');
    const sandbox = store.find(id);
    if (!sandbox) throw sandboxGone();
    const owner = sandboxOwner(sandbox);
    return { bearer: { tokenId: owner, owner } };
  };
}

function shown(token: string | string[] | undefined): Credential {
  return typeof token === 'string' && token !== '' ? { token } : {};
}

function messageOf(error: HoldfastError): string {
  if (error.code !== 'no_route' && error.code !== 'method_not_allowed') return error.message;
  return 'Holdfast cannot do this: sandboxes here are processes on this machine, without templates, snapshots, pauses, volumes or networks of their own.';
}
