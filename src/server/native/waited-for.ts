// What a process is waited for over HTTP: conditions, or one word.

import * as v from 'valibot';
import { conditions } from '../../protocol/operations.ts';
import { described } from '../../protocol/schema/described.ts';

/** A condition that needs no more than its name. */
const word = v.picklist(['exit', 'closed', 'settled']);
const [{ item: condition }] = conditions.pipe[0].pipe;
const waitedForEach = v.pipe(
  v.array(v.lazy((input) => (typeof input === 'string' ? word : condition))),
  v.minLength(1),
  v.maxLength(16),
);
/** Without one: until the process has exited. */
export const waitedFor = v.optional(
  described(
    'Conditions; returns when the first is met.',
    v.lazy((input) => (typeof input === 'string' ? word : waitedForEach)),
  ),
  'exit',
);
