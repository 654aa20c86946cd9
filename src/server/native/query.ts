// The query of a native operation: its own fields, and the owner, for tools that cannot send a header.

import * as v from 'valibot';
import { optional } from '../../protocol/schema/described.ts';

export const OWNER_DESCRIPTION =
  'Owner to act as. The admin token may name any owner and sees all without one; a scoped token may name only its own.';

/** Strict: a mistyped name is refused instead of being ignored. */
export const query = <Entries extends v.ObjectEntries>(entries: Entries) =>
  v.strictObject({ ...entries, owner: optional(OWNER_DESCRIPTION, v.string()) });
