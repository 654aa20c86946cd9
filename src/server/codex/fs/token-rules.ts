// What a token allows a client to do with files through the server itself: no more than its processes may.

import type { OwnerPolicy } from '../../../protocol/confinement/confinement.ts';
import { withoutLinks, type Access, type Rule } from '../sandbox/policy.ts';
import { bytePath } from './uri.ts';

/** The server has the rights of its own user, so it touches no file for a token whose processes have another one. */
const NOTHING: readonly Rule[] = [{ path: bytePath('/'), access: 'deny' }];
const ONLY_READING: readonly Rule[] = [{ path: bytePath('/'), access: 'read' }];

/** Undefined: everything. */
export async function tokenRules(
  policy: OwnerPolicy | undefined,
): Promise<readonly Rule[] | undefined> {
  const { fs = 'open', user } = policy?.sandbox ?? {};
  if (user !== undefined) return NOTHING;
  if (fs === 'open') return undefined;
  if (fs === 'read-only') return ONLY_READING;
  const { read = ['/'], write, hide = [] } = fs;
  const rules = (paths: readonly string[], access: Access): Promise<Rule>[] =>
    paths.map(async (path) => ({ path: await withoutLinks(bytePath(path)), access }));
  return Promise.all([...rules(read, 'read'), ...rules(write, 'write'), ...rules(hide, 'deny')]);
}
