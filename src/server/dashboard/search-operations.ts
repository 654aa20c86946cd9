// The native operation that searches the output of all processes.

import * as v from 'valibot';
import { operations } from '../../protocol/operations.ts';
import { optional } from '../../protocol/schema/described.ts';
import { count } from '../../protocol/schema/fields.ts';
import { query } from '../native/query.ts';

const { pattern, kind, ignoreCase, context } = operations.search.entries;
const { name, label, state } = operations.list.entries;

export const searchOperations = {
  searchAll: {
    method: 'GET',
    path: '/v1/search',
    summary: 'Search the output of all processes',
    about:
      'The newest process first. JSON lines as they are found: "hits" with a process and its hits, "progress", and at last "end". next of "end" is before of the search that continues with older processes. "problem" carries an error.',
    query: query({
      pattern,
      kind,
      ignoreCase,
      context,
      name,
      label,
      state,
      limit: optional(
        'Maximum number of hits altogether (default 200).',
        v.pipe(count(1000), v.minValue(1)),
      ),
      perProcess: optional(
        'Maximum number of hits of one process (default 20).',
        v.pipe(count(1000), v.minValue(1)),
      ),
      before: optional('Continue with older processes: next of an "end".', count(2 ** 48 - 1)),
    }),
    media: 'application/x-ndjson',
  },
} as const;
