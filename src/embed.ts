// Holdfast inside somebody's program: the host in process, behind the same client. When the program ends, so do the
// processes.

import { homedir } from 'node:os';
import type { Api } from './client/api.ts';
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
  return new Holdfast(
    keepingAlive(nearApi(await Host.open({ folder, surroundings, limits }), owner)),
  );
}

/**
 * The host's timers keep no program alive: a keeper may leave while it waits. A program that awaits an answer must not
 * end before it comes.
 */
function keepingAlive(api: Api): Api {
  let awaited = 0;
  let hold: NodeJS.Timeout | undefined;
  const held =
    (call: (...args: unknown[]) => Promise<unknown>) =>
    async (...args: unknown[]): Promise<unknown> => {
      awaited += 1;
      hold ??= setInterval(() => undefined, LONG_MS);
      try {
        return await call(...args);
      } finally {
        awaited -= 1;
        if (awaited === 0) clearInterval(hold);
        if (awaited === 0) hold = undefined;
      }
    };
  return Object.fromEntries(
    Object.entries(api).map(([name, call]) => [name, held(call as Parameters<typeof held>[0])]),
  ) as unknown as Api;
}

const LONG_MS = 2 ** 30;
