// Holdfast inside a program: a host in-process, behind the same client. The processes end with the program.

import type { Api } from './client/api.ts';
import { Holdfast } from './client/holdfast.ts';
import type { Limits } from './protocol/limits.ts';

export interface EmbedOptions {
  /** The folder of the journals; no other host may use it at the same time. */
  readonly folder: string;
  /** What processes inherit; by default this process's environment. */
  readonly env?: NodeJS.ProcessEnv;
  readonly limits?: Partial<Limits>;
  /** The owner; "embedded" by default. */
  readonly owner?: string;
}

/** A host in this process. Its processes end with this program. */
export async function embed(options: EmbedOptions): Promise<Holdfast> {
  const { env = process.env, owner = 'embedded', ...rest } = options;
  // Screens are part of the server, which most programs that import this never need.
  const { embeddedApi } = await import('./server/embedded-api.ts');
  return new Holdfast(keepAlive(await embeddedApi({ ...rest, env, owner, cwd: process.cwd() })));
}

/**
 * The host's timers are unref'd, because a keeper may exit while they wait. A program that awaits an answer must not
 * exit before it comes.
 */
function keepAlive(api: Api): Api {
  let pending = 0;
  let timer: NodeJS.Timeout | undefined;
  const counted =
    (call: Call) =>
    async (...args: unknown[]): Promise<unknown> => {
      pending += 1;
      timer ??= setInterval(() => undefined, LONG_MS);
      try {
        return await call(...args);
      } finally {
        pending -= 1;
        if (pending === 0) clearInterval(timer);
        if (pending === 0) timer = undefined;
      }
    };
  const wrapAll = (calls: object): object =>
    Object.fromEntries(
      Object.entries(calls).map(([name, call]: [string, unknown]) => [
        name,
        typeof call === 'function' ? counted(call as Call) : wrapAll(call as object),
      ]),
    );
  return wrapAll(api) as Api;
}

type Call = (...args: unknown[]) => Promise<unknown>;

const LONG_MS = 2 ** 30;
