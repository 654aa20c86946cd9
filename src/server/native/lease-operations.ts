// The native operations on leases, which end a caller's processes with the caller.

import * as v from 'valibot';
import { operations } from '../../protocol/operations.ts';
import { query } from './query.ts';
import { answers } from './shapes.ts';

export const leaseOperations = {
  holdLease: {
    method: 'POST',
    path: '/v1/leases/:name',
    summary: 'Open or renew a lease',
    about:
      'Processes and terminals that were started with this name as "lease" are stopped when the lease is not renewed for ttlMs, or when it is deleted. Names belong to their owner.',
    query: query({}),
    body: v.strictObject({ ttlMs: operations.holdLease.entries.ttlMs }),
    answer: answers.nothing,
  },
  endLease: {
    method: 'DELETE',
    path: '/v1/leases/:name',
    summary: 'End a lease, and the processes that were started under it',
    about: 'Does nothing if the lease is not open.',
    query: query({}),
    answer: answers.nothing,
  },
} as const;
