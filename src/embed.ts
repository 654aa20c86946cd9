// Holdfast inside somebody's program: the host in process, behind the same client. When the program ends, so do the
// processes.

import type { Api } from './client/api.ts';
import { Holdfast } from './client/holdfast.ts';
import type { Limits } from './protocol/limits.ts';

export interface EmbedOptions {
  /** Where journals are kept; no other host may use it at the same time. */
  readonly folder: string;
  /** What processes inherit; by default this program's environment. */
  readonly env?: NodeJS.ProcessEnv;
  readonly limits?: Partial<Limits>;
  /** In whose name; "embedded" by default. */
  readonly owner?: string;
}

/** A host inside this program, without a second process. Its processes end with this program. */
export async function embed(options: EmbedOptions): Promise<Holdfast> {
  const { env = process.env, owner = 'embedded', ...rest } = options;
  // The screens of terminals are part of the server, which most programs that import this never need.
  const { embeddedApi } = await import('./server/embedded-api.ts');
  return new Holdfast(keepingAlive(await embeddedApi({ ...rest, env, owner, cwd: process.cwd() })));
}

/**
 * The host's timers keep no program alive: a keeper may leave while it waits. A program that awaits an answer must not
 * end before it comes.
 */
function keepingAlive(api: Api): Api {
  let awaited = 0;
  let hold: NodeJS.Timeout | undefined;
  const held =
    (call: Call) =>
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
  const all = (calls: object): object =>
    Object.fromEntries(
      Object.entries(calls).map(([name, call]: [string, unknown]) => [
        name,
        typeof call === 'function' ? held(call as Call) : all(call as object),
      ]),
    );
  return all(api) as Api;
}

type Call = (...args: unknown[]) => Promise<unknown>;

const LONG_MS = 2 ** 30;
