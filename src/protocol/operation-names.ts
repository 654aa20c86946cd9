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
  'remove',
  'completions',
  'acknowledge',
  'lease',
  'holdLease',
  'owners',
  'limits',
  'health',
] as const;

export type OperationName = (typeof operationNames)[number];
