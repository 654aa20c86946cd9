// The native operations that the dashboard brought.

import { attentionOperations } from './attention-operations.ts';
import { searchOperations } from './search-operations.ts';
import { sessionOperations } from './session-operations.ts';
import { tokenOperations } from './token-operations.ts';
import { timelineOperations } from './timeline-operations.ts';

export const dashboardOperations = {
  ...attentionOperations,
  ...searchOperations,
  ...timelineOperations,
  ...sessionOperations,
  ...tokenOperations,
} as const;
