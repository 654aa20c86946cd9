// The owner that a native request acts as. The token decides; a header or the query may narrow it, never widen it.

import { HoldfastError } from '../../protocol/errors.ts';
import { EVERYONE, type Owner } from '../../protocol/host-api.ts';
import { invalid } from './input.ts';
import type { Exchange } from '../http/router.ts';

export interface NativeOwner {
  /** Whose processes the request sees and changes. */
  readonly sees: Owner;
  /** Who owns the processes that the request starts. */
  readonly starts: Owner;
}

/** Owns what the admin starts without naming an owner. */
const API_OWNER: Owner = 'api';
/** Printable. No comma, because Node joins repeated headers with one. */
const OWNER = /^[\x20-\x2b\x2d-\x7e]{1,256}$/;

export function nativeOwner({
  caller,
  request,
  query,
}: Pick<Exchange, 'caller' | 'request' | 'query'>): NativeOwner {
  const named = namedOwner(request.headers['holdfast-owner'], query.get('owner'));
  if (!caller.admin) {
    if (named !== undefined && named !== caller.owner)
      throw new HoldfastError('forbidden', 'This token is for another owner.');
    return { sees: caller.owner, starts: caller.owner };
  }
  if (named === undefined) return { sees: EVERYONE, starts: API_OWNER };
  if (!OWNER.test(named) || named === EVERYONE)
    throw invalid('must be 1 to 256 printable characters without a comma, and not "*"', 'owner');
  return { sees: named, starts: named };
}

function namedOwner(
  header: string | string[] | undefined,
  query: string | null,
): string | undefined {
  const fromHeader = Array.isArray(header) ? header.join(',') : header;
  if (fromHeader !== undefined && query !== null && fromHeader !== query)
    throw new HoldfastError('forbidden', 'The header and the query name different owners.');
  return fromHeader ?? query ?? undefined;
}
