// What the operations need of a lane: which of them wait, which carry much output, and how one is asked again later.

import type { FleetOperation } from '../wire/messages.ts';
import type { Lane } from '../wire/subjects.ts';

/** The field that says how long an operation waits. */
const waitFields: Partial<Record<FleetOperation, 'waitMs' | 'timeoutMs'>> = {
  start: 'waitMs',
  changes: 'waitMs',
  read: 'waitMs',
  text: 'waitMs',
  completions: 'waitMs',
  run: 'timeoutMs',
  runWait: 'timeoutMs',
  wait: 'timeoutMs',
};

const bulk = new Set<FleetOperation>([
  'read',
  'range',
  'text',
  'search',
  'list',
  'changes',
  'segment',
]);

export function laneOf(op: FleetOperation): Lane {
  return bulk.has(op) ? 'bulk' : 'control';
}

/** How long the call waits for something to happen; 0 for one that does not. Without a `timeoutMs` it waits for ever. */
export function waitsMs(op: FleetOperation, params: unknown): number {
  const field = waitFields[op];
  if (field === undefined) return 0;
  const value = (params as Record<string, unknown>)[field];
  if (typeof value === 'number') return value;
  const never = op === 'run' && (params as { wait?: boolean }).wait === false;
  return field === 'timeoutMs' && !never ? Infinity : 0;
}

/** The parameters of a call that has waited `elapsedMs` already. A start counts from the start of its process. */
export function afterWaiting(op: FleetOperation, params: unknown, elapsedMs: number): unknown {
  const field = waitFields[op];
  const value = field && (params as Record<string, unknown>)[field];
  if (field === undefined || op === 'start' || typeof value !== 'number') return params;
  return { ...(params as object), [field]: Math.max(0, Math.ceil(value - elapsedMs)) };
}
