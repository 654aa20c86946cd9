// Headers of a streaming request that say how long it may be silent and how long it may last.

import type { IncomingMessage } from 'node:http';
import { invalid } from './messages.ts';

const DEFAULT_KEEPALIVE_S = 90;
const LONGEST_TIMEOUT_MS = 2 ** 31;

/** A keepalive message follows this long without another. */
export function keepaliveMs({ headers }: IncomingMessage): number {
  const seconds = Number(headers['keepalive-ping-interval'] ?? DEFAULT_KEEPALIVE_S);
  return Number.isFinite(seconds) && seconds > 0
    ? Math.min(Math.ceil(seconds * 1000), LONGEST_TIMEOUT_MS)
    : DEFAULT_KEEPALIVE_S * 1000;
}

/** On a start it is the life of the process, on other streams the life of the stream. */
export function timeoutOf({ headers }: IncomingMessage): number | undefined {
  const text = headers['connect-timeout-ms'];
  if (text === undefined) return undefined;
  if (typeof text !== 'string' || !/^\d{1,10}$/.test(text))
    throw invalid('Connect-Timeout-Ms is not a number of milliseconds');
  return Math.min(Math.max(1, Number(text)), LONGEST_TIMEOUT_MS);
}
