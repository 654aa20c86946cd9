// The native operations on tokens, for the page Host: which there are, and the end of one. They are created on the command
// line only: a page that was tricked must not make one.

import * as v from 'valibot';
import { HoldfastError } from '../../protocol/errors.ts';
import { EVERYONE, type Owner } from '../../protocol/host-api.ts';
import type { Tokens } from '../http/tokens.ts';
import type { Calls } from '../native/call.ts';
import { shape, text, whole } from '../native/event-shapes.ts';
import { query } from '../native/query.ts';
import { answers } from '../native/shapes.ts';

export interface ListedToken {
  readonly id: string;
  readonly owner: Owner;
  readonly createdAtMs: number;
  readonly expiresAtMs?: number;
}

export const tokenOperations = {
  listTokens: {
    method: 'GET',
    path: '/v1/tokens',
    summary: 'List tokens',
    about:
      'Admin token only. The valid ones, without the tokens themselves: only their hashes are stored.',
    query: query({}),
    answer: shape<{ tokens: ListedToken[] }>(
      v.object({
        tokens: v.array(
          v.object({
            id: text,
            owner: text,
            createdAtMs: whole,
            expiresAtMs: v.exactOptional(whole),
          }),
        ),
      }),
    ),
  },
  revokeToken: {
    method: 'DELETE',
    path: '/v1/tokens/:id',
    summary: 'Revoke a token',
    about: 'Admin token only. Processes of its owner keep running.',
    query: query({}),
    answer: answers.nothing,
  },
} as const;

export interface TokensOption {
  readonly tokens: Pick<Tokens, 'list' | 'isValid' | 'revoke'>;
}

export function tokenCalls({ tokens }: TokensOption) {
  const admitAdmin = (sees: Owner): void => {
    if (sees !== EVERYONE)
      throw new HoldfastError('forbidden', 'Tokens are listed and revoked by the admin token.');
  };
  return {
    listTokens: async ({ owner }) => {
      admitAdmin(owner.sees);
      const valid = tokens.list().filter(({ id }) => tokens.isValid(id));
      return {
        tokens: valid.map(({ id, owner: whose, createdAtMs, expiresAtMs }) => {
          const listed = { id, owner: whose, createdAtMs };
          return expiresAtMs === undefined ? listed : { ...listed, expiresAtMs };
        }),
      };
    },
    revokeToken: async ({ owner, id }) => {
      admitAdmin(owner.sees);
      if (tokens.revoke(id)) return {};
      throw new HoldfastError('not_found', 'There is no such token; it may have been revoked.');
    },
  } satisfies Partial<Calls>;
}
