// The native operations on what needs a person, and on what a process consists of now.

import * as v from 'valibot';
import type { Need } from '../../protocol/dashboard/attention.ts';
import type { Results, TreeMember } from '../../protocol/host-api.ts';
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

const member = shape<TreeMember>(
  v.object({
    pid: whole,
    parent: whole,
    command: text,
    state: text,
    cpuMs: whole,
    memoryBytes: whole,
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
  tree: {
    method: 'GET',
    path: '/v1/processes/:id/tree',
    summary: 'List the living processes of a start',
    about:
      'The root and its descendants, at most 500, each with its parent, command, processor time so far and resident memory.',
    query: query({}),
    answer: shape<Results['tree']>(v.object({ members: v.array(member), total: whole })),
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
