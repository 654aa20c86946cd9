// The names of a host's operations, without their schemas, for code that only forwards calls.

export const operationNames = [
  'start',
  'list',
  'changes',
  'get',
  'read',
  'range',
  'text',
  'search',
  'write',
  'resize',
  'signal',
  'run',
  'runWait',
  'mark',
  'keyboard',
  'wait',
  'ports',
  'tree',
  'attention',
  'dismiss',
  'remove',
  'completions',
  'acknowledge',
  'lease',
  'holdLease',
  'owners',
  'limits',
  'enforcement',
  'health',
] as const;

export type OperationName = (typeof operationNames)[number];

/** Whether repeating the call has the same effect as making it once. */
export function repeatable(name: OperationName, params: unknown): boolean {
  const given = params as { key?: unknown; id?: unknown; writeId?: unknown; run?: unknown };
  if (name === 'start') return given.key !== undefined || given.id !== undefined;
  if (name === 'write') return given.writeId !== undefined;
  if (name === 'run') return given.run !== undefined;
  return name !== 'signal' && name !== 'remove' && name !== 'mark';
}
