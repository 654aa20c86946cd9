// The native operations on the sessions of dashboard pages: a link that signs one page in, and what is signed in.

import * as v from 'valibot';
import { described } from '../../protocol/schema/described.ts';
import type { PageSession } from './page-sessions.ts';
import { shape, text, whole } from '../native/event-shapes.ts';
import { query } from '../native/query.ts';
import { answers } from '../native/shapes.ts';

const entries = {
  id: text,
  owner: text,
  browser: text,
  createdAtMs: whole,
  seenAtMs: whole,
  expiresAtMs: whole,
};
const session = shape<PageSession>(v.object(entries));

export const sessionOperations = {
  createSessionCode: {
    method: 'POST',
    path: '/v1/sessions/codes',
    summary: 'Create a one-time code that signs a dashboard page in',
    about:
      'The link is /#code=CODE of this server. The code works once, within two minutes, with the rights of the caller.',
    query: query({}),
    answer: v.object({ code: text, expiresAtMs: whole }),
  },
  openSession: {
    method: 'POST',
    path: '/v1/sessions',
    summary: 'Exchange a one-time code for the token of a dashboard page',
    about: 'Needs no token. A session ends 12 hours after its last use, and 7 days after it began.',
    anonymous: true,
    query: query({}),
    body: v.strictObject({
      code: described('The code of the link.', v.pipe(v.string(), v.maxLength(128))),
    }),
    answer: v.object({ token: text, session }),
  },
  listSessions: {
    method: 'GET',
    path: '/v1/sessions',
    summary: 'List signed-in dashboard pages',
    about: 'current: the page that asks.',
    query: query({}),
    answer: v.object({
      sessions: v.array(v.object({ ...entries, current: v.boolean() })),
    }),
  },
  endSession: {
    method: 'DELETE',
    path: '/v1/sessions/:id',
    summary: 'Sign a dashboard page out',
    query: query({}),
    answer: answers.nothing,
  },
} as const;
