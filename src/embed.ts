// Holdfast inside somebody's program: the host in process, behind the same client. When the program ends, so do the
// processes.

import { homedir } from 'node:os';
import { Holdfast } from './client/holdfast.ts';
import { nearApi } from './client/near-api.ts';
import { Host } from './host/host.ts';
import type { Limits } from './protocol/limits.ts';

export interface EmbedOptions {
  /** Where journals are kept; no other host may use it at the same time. */
  readonly folder: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly limits?: Partial<Limits>;
  readonly owner?: string;
}

export async function embed(options: EmbedOptions): Promise<Holdfast> {
  const { folder, env = process.env, limits = {}, owner = 'embedded' } = options;
  const surroundings = { env, cwd: process.cwd(), home: homedir() };
  return new Holdfast(nearApi(await Host.open({ folder, surroundings, limits }), owner));
}
