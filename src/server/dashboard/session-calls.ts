// What the operations on sessions of dashboard pages do.

import { EVERYONE } from '../../protocol/host-api.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Calls } from '../native/call.ts';
import { tokenIdOf, type PageSessions } from './page-sessions.ts';
import type { WatchOptions } from './watch/watch.ts';

interface PagesOption {
  readonly pages: PageSessions;
}

const SHARE_MS = 3_600_000;

export function sessionCalls({ host, pages }: Pick<WatchOptions, 'host'> & PagesOption) {
  /** All for the admin; otherwise those of the same owner. */
  const seenBy = (sees: string) => (owner: string) => sees === EVERYONE || sees === owner;
  return {
    changes: ({ exchange, owner, query: { owner: _owner, ...wanted } }) =>
      host.changes(owner.sees, wanted, exchange.gone),
    watch: () =>
      Promise.reject(
        new HoldfastError('invalid_input', 'Ask for a WebSocket: "Upgrade: websocket".'),
      ),
    createSessionCode: async ({ owner }) => pages.createCode(owner.sees),
    openSession: async ({ exchange, body: { code } }) =>
      pages.open(code, exchange.request.headers['user-agent'] ?? ''),
    shareProcess: async ({ owner, id, body: { forMs = SHARE_MS } }) => {
      const process = await host.get(owner.sees, { id });
      const shared = pages.share(process.owner, process.id, forMs);
      return { ...shared, owner: process.owner };
    },
    listSessions: async ({ exchange, owner }) => {
      const { tokenId } = exchange.caller;
      const sessions = pages.list(seenBy(owner.sees)).map((each) => {
        return { ...each, current: tokenIdOf(each.id) === tokenId };
      });
      return { sessions };
    },
    endSession: async ({ owner, id }) => {
      if (pages.revoke(id, seenBy(owner.sees))) return {};
      throw new HoldfastError('not_found', 'There is no such session; it may have ended.');
    },
  } satisfies Partial<Calls>;
}
