// One call of a native operation with its checked query and body, and the type of the table of handlers.

import type { Answer, Body, NativeName, Query } from './operations.ts';
import type { NativeOwner } from './owner.ts';
import type { Exchange } from '../http/router.ts';

export interface NativeCall<Name extends NativeName> {
  readonly exchange: Exchange;
  readonly owner: NativeOwner;
  /** The process in the path, for operations that name one. */
  readonly id: string;
  readonly query: Query<Name>;
  readonly body: Body<Name>;
}

/** A handler returns undefined if it has written the answer itself. */
export type Calls = {
  readonly [Name in NativeName]: (call: NativeCall<Name>) => Promise<Answer<Name> | undefined>;
};
