// The native operations on what needs a person.

import * as v from 'valibot';
import type { Need } from '../../protocol/dashboard/attention.ts';
import type { Results } from '../../protocol/host-api.ts';
import { operations } from '../../protocol/operations.ts';
import { shape, text, whole } from '../native/event-shapes.ts';
import { query } from '../native/query.ts';
import { answers } from '../native/shapes.ts';

const need = shape<Need>(
  v.object({
    owner: text,
    id: text,
    name: v.exactOptional(text),
    command: text,
    reason: v.picklist(['asked', 'reads', 'quiet']),
    atMs: whole,
    text,
  }),
);

export const attentionOperations = {
  attention: {
    method: 'GET',
    path: '/v1/attention',
    summary: 'List what needs a person',
    about:
      'asked: the program rang the bell or sent a notice (OSC 9, 777). reads: the kernel says that the program in the foreground is blocked in a read of its terminal. quiet: nothing was printed for quietMs. The oldest first. Completions tell what has ended.',
    query: query({ quietMs: operations.attention.entries.quietMs }),
    answer: shape<Results['attention']>(v.object({ needs: v.array(need) })),
  },
  dismiss: {
    method: 'POST',
    path: '/v1/processes/:id/dismiss',
    summary: 'Say that a person has looked',
    about: 'What the process needed until now is not listed again; new output can bring it back.',
    query: query({}),
    answer: answers.nothing,
  },
} as const;
