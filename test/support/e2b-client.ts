// The unmodified E2B SDK against a server of ours. The home directory is an empty one, so that login shells start at once.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Sandbox, type SandboxOpts } from 'e2b';
import type { ServerOptions } from '../../src/server/server.ts';
import { serve, type Served } from './coder-client.ts';
import { temporaryFolder } from './hosts.ts';

export interface E2bServed extends Served {
  /** The home directory of the user. */
  readonly userHome: string;
  /** How a client is pointed here. */
  readonly options: { apiUrl: string; sandboxUrl: string; apiKey: string };
  create(options?: SandboxOpts): Promise<Sandbox>;
}

export async function serveE2b(options: Partial<ServerOptions> = {}): Promise<E2bServed> {
  const userHome = join(temporaryFolder(), 'user');
  mkdirSync(userHome);
  process.env['HOME'] = userHome;
  const served = await serve(options);
  const key = served.token;
  const pointed = clientOptions(served.server.url, key);
  return {
    ...served,
    userHome,
    options: pointed,
    create: (more) => Sandbox.create({ ...pointed, ...more }),
  };
}

export function clientOptions(url: string, apiKey: string): E2bServed['options'] {
  return { apiUrl: `${url}/e2b`, sandboxUrl: `${url}/e2b/envd`, apiKey };
}

/** What a call failed with. */
export async function problem(
  promise: Promise<unknown>,
): Promise<{ name: string; message: string; exitCode?: number }> {
  try {
    await promise;
  } catch (error) {
    const { message, exitCode } = error as { message: string; exitCode?: number };
    const { name } = (error as object).constructor;
    return { name, message, ...(exitCode !== undefined && { exitCode }) };
  }
  throw new Error('it succeeded');
}
