// A host over a link to the keeper that reconnects when the link is lost. Operations that are safe to repeat are
// retried; the others fail with `keeper_lost`, and the caller decides.

import type { CancelSignal } from '../base/cancel-signal.ts';
import { HoldfastError } from '../protocol/errors.ts';
import { EVERYONE, type HostApi, type Owner } from '../protocol/host-api.ts';
import { operations, type OperationName, type Params } from '../protocol/operations.ts';
import { repeatable } from '../protocol/operation-names.ts';
import { useFastLibraries } from '../system/fast-libraries.ts';
import type { KeeperLink } from '../keeper/link.ts';

export type ReconnectingHost = HostApi & {
  /** The current link, connected if necessary. */
  link(): Promise<KeeperLink>;
};

export function reconnectingHost(connect: () => Promise<KeeperLink>): ReconnectingHost {
  // For checksums of large pages that are read from the keeper's files, and for base64.
  useFastLibraries();
  let current: Promise<KeeperLink> | undefined;
  /** The link while it is connected, so that a call need not wait for a promise. */
  let linked: KeeperLink | undefined;
  let closed = false;
  const link = (): Promise<KeeperLink> => {
    if (closed)
      return Promise.reject(new HoldfastError('host_closed', 'The server is going down.'));
    current ??= fresh();
    return current;
  };
  const fresh = async (): Promise<KeeperLink> => {
    try {
      const made = await connect();
      if (!closed) linked = made;
      void made.ended.then(() => {
        current = undefined;
        linked = undefined;
      });
      return made;
    } catch (error) {
      current = undefined;
      throw error;
    }
  };
  const call =
    (name: OperationName) => async (owner: Owner, params: unknown, signal?: CancelSignal) => {
      let asked: KeeperLink | undefined;
      const ask = (now: KeeperLink): Promise<unknown> => {
        asked = now;
        const operation = now[name] as (...args: unknown[]) => Promise<unknown>;
        return operation(owner, params, signal);
      };
      try {
        return await (linked ? ask(linked) : link().then(ask));
      } catch (error) {
        if (
          !(error instanceof HoldfastError) ||
          error.code !== 'keeper_lost' ||
          !repeatable(name, params)
        )
          throw error;
        // A link that is being torn down refuses before it has ended: a retry before that would be refused too.
        await asked?.ended;
        return link().then(ask);
      }
    };
  const calls = Object.fromEntries(
    Object.keys(operations).map((name) => [name, call(name as OperationName)]),
  );
  return {
    ...(calls as unknown as Omit<HostApi, 'close'>),
    link,
    close: async () => {
      closed = true;
      linked = undefined;
      await (await current?.catch(() => undefined))?.close();
    },
  };
}

/** Gives a new keeper the ceiling of all processes. A keeper that cannot keep it is not used. */
export async function limitTotal(
  link: KeeperLink,
  total: NonNullable<Params<'enforcement'>['total']>,
): Promise<void> {
  // Inside a process of this keeper the server itself is refused, with a better reason.
  if (link.keeper.scope) return;
  try {
    await link.enforcement(EVERYONE, { total });
  } catch (error) {
    await link.close();
    throw error;
  }
}
