// What has ended since a person looked: the completions that no dashboard has acknowledged. The keeper stores that, so every
// device shows the same.

import { computed, signal } from '@preact/signals';
import { DASHBOARD_SUBSCRIBER } from '../../protocol/dashboard/subscriber.ts';
import type { Completion } from '../../protocol/host-api.ts';
import { hasFailed } from '../model/state-words.ts';
import { ask, Problem } from './http.ts';
import { subscribe } from './watch.ts';

const open = signal<ReadonlyMap<number, Completion>>(new Map());
export const inboxLoaded = signal(false);
export const inboxProblem = signal<Problem | undefined>(undefined);

/** Failures first, then the newest. */
export const inbox = computed<readonly Completion[]>(() =>
  Array.from(open.value.values()).sort(
    (a, b) => Number(hasFailed(b)) - Number(hasFailed(a)) || b.number - a.number,
  ),
);

export function followInbox(): () => void {
  return subscribe({
    // From the beginning each time: another device may have acknowledged some meanwhile.
    begin: () => {
      open.value = new Map();
      return { type: 'completions' };
    },
    onMessage: (message) => {
      if (message.type !== 'completions') return;
      const found = message['completions'] as readonly Completion[];
      open.value = new Map([...open.value, ...found.map((each) => [each.number, each] as const)]);
      inboxLoaded.value = true;
    },
  });
}

export async function acknowledge(done: readonly Completion[]): Promise<void> {
  const numbers = done.map(({ number }) => number);
  try {
    await ask('POST', '/v1/completions/acknowledge', {
      body: { subscriber: DASHBOARD_SUBSCRIBER, numbers },
    });
    open.value = new Map(Array.from(open.value).filter(([number]) => !numbers.includes(number)));
    inboxProblem.value = undefined;
  } catch (error) {
    inboxProblem.value = error as Problem;
  }
}
