// The conditions of a wait over HTTP: objects, or single words.

import * as v from 'valibot';
import { conditions } from '../../protocol/operations.ts';
import { described } from '../../protocol/schema/described.ts';

/** A condition that needs only its name. */
const word = v.picklist(['exit', 'closed', 'settled']);
const [{ item: condition }] = conditions.pipe[0].pipe;
const waitedForEach = v.pipe(
  v.array(v.lazy((input) => (typeof input === 'string' ? word : condition))),
  v.minLength(1),
  v.maxLength(16),
);
/** The default waits for the exit. */
export const waitConditions = v.optional(
  described(
    'Conditions; returns when the first is met.',
    v.lazy((input) => (typeof input === 'string' ? word : waitedForEach)),
  ),
  'exit',
);
