// The time as the server has it, in steps: what shows ages is drawn anew once a second, and only while it is looked at.

import { signal } from '@preact/signals';
import { clockAheadMs } from './watch.ts';

const STEP_MS = 1000;

export const nowMs = signal(Date.now());

setInterval(() => {
  if (document.visibilityState === 'visible') nowMs.value = Date.now() + clockAheadMs.peek();
}, STEP_MS);
