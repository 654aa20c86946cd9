// The native operations on the sessions of dashboard pages: a link that signs one page in, and what is signed in.

import * as v from 'valibot';
import type { Results } from '../../protocol/host-api.ts';
import { operations } from '../../protocol/operations.ts';
import { described, optional } from '../../protocol/schema/described.ts';
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
  only: v.exactOptional(v.array(text)),
};
const session = shape<PageSession>(v.object(entries));

const { epoch, after, limit, waitMs } = operations.changes.entries;

export const sessionOperations = {
  changes: {
    method: 'GET',
    path: '/v1/changes',
    summary: 'List what has changed in the list of processes',
    about:
      'For a client that keeps a copy of the list. Ask again with epoch and after=version of the answer; reset: drop the copy first; more: ask again at once.',
    query: query({ epoch, after, limit, waitMs }),
    answer: shape<Results['changes']>(
      v.object({
        epoch: text,
        version: whole,
        reset: v.boolean(),
        more: v.boolean(),
        changed: v.array(answers.process),
        removed: v.array(v.object({ owner: text, id: text })),
      }),
    ),
  },
  watch: {
    method: 'GET',
    path: '/v1/watch',
    summary: 'Follow everything that the dashboard shows, over one WebSocket',
    about:
      'A GET that asks to become a WebSocket. Needs no token itself: the first message is {"type":"hello","token":TOKEN}, and nothing is sent before. docs/wire/watch.md describes the messages. Any other GET is refused.',
    anonymous: true,
    query: query({}),
    media: 'application/octet-stream',
  },
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
  shareProcess: {
    method: 'POST',
    path: '/v1/processes/:id/share',
    summary: 'Create a link that shows one process',
    about:
      'A client that has the link /#share=TOKEN/p/OWNER/ID of this server sees the process until then and changes nothing. The link is listed and ended like a signed-in page.',
    query: query({}),
    body: v.strictObject({
      forMs: optional(
        'How long the link works (default one hour, at most seven days).',
        v.pipe(v.number(), v.integer(), v.minValue(1000), v.maxValue(7 * 24 * 3_600_000)),
      ),
    }),
    answer: v.object({ token: text, owner: text, session }),
  },
  listSessions: {
    method: 'GET',
    path: '/v1/sessions',
    summary: 'List signed-in dashboard pages',
    about: 'current: the page that asks. only: a shared link, with the processes that it shows.',
    query: query({}),
    answer: shape<{ sessions: (PageSession & { current: boolean })[] }>(
      v.object({ sessions: v.array(v.object({ ...entries, current: v.boolean() })) }),
    ),
  },
  endSession: {
    method: 'DELETE',
    path: '/v1/sessions/:id',
    summary: 'Sign a dashboard page out',
    query: query({}),
    answer: answers.nothing,
  },
} as const;
