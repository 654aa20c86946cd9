// One call of a native operation, its query and body already checked, and the table of what each answers.

import type { Answer, Body, NativeName, Query } from './operations.ts';
import type { NativeOwner } from './owner.ts';
import type { Exchange } from '../http/router.ts';

export interface NativeCall<Name extends NativeName> {
  readonly exchange: Exchange;
  readonly owner: NativeOwner;
  /** The process in the path, for rows that name one. */
  readonly id: string;
  readonly query: Query<Name>;
  readonly body: Body<Name>;
}

/** Nothing, when the answer has been written already. */
export type Calls = {
  readonly [Name in NativeName]: (call: NativeCall<Name>) => Promise<Answer<Name> | undefined>;
};
