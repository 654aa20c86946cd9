// Which running processes need a person, as the host finds out once a second while a page is open.

import { computed, effect, signal } from '@preact/signals';
import type { Need } from '../../protocol/dashboard/attention.ts';
import { needWords } from '../model/state-words.ts';
import { visibleText } from '../model/words.ts';
import { ask, Problem } from './http.ts';
import { inboxProblem } from './inbox.ts';
import { keyOf } from './processes.ts';
import { place } from './route.ts';
import { notifies, quietAfter } from './settings.ts';
import { subscribe } from './watch.ts';

/** The oldest first. */
export const needs = signal<readonly Need[]>([]);

const byProcess = computed(() => new Map(needs.value.map((need) => [keyOf(need), need] as const)));

const QUIET_MS = { off: undefined, '1 m': 60_000, '5 m': 300_000, '30 m': 1_800_000 } as const;

export function needOf(process: { readonly owner: string; readonly id: string }): Need | undefined {
  return byProcess.value.get(keyOf(process));
}

/** Processes that need a person before the others, each part in its order. */
export function needsFirst<T extends { readonly owner: string; readonly id: string }>(
  processes: readonly T[],
): readonly T[] {
  if (needs.value.length === 0) return processes;
  return [...processes.filter(needOf), ...processes.filter((process) => !needOf(process))];
}

export function followNeeds(): () => void {
  let stop: (() => void) | undefined;
  const cancel = effect(() => {
    const quietMs = QUIET_MS[quietAfter.value];
    stop?.();
    stop = subscribe({
      begin: () => ({ type: 'attention', ...(quietMs !== undefined && { quietMs }) }),
      onMessage: (message) => {
        if (message.type !== 'attention') return;
        const found = message['needs'] as readonly Need[];
        notify(found);
        needs.value = found;
      },
    });
  });
  return () => {
    cancel();
    stop?.();
  };
}

export async function dismiss({ owner, id }: Need): Promise<void> {
  try {
    await ask('POST', `/v1/processes/${encodeURIComponent(id)}/dismiss`, { query: { owner } });
    needs.value = needs.value.filter((need) => need.owner !== owner || need.id !== id);
    inboxProblem.value = undefined;
  } catch (error) {
    inboxProblem.value = error as Problem;
  }
}

/** Tells the desktop of what is new, unless that process is in front of the person already. */
function notify(found: readonly Need[]): void {
  if (notifies.peek() === 'off' || Notification.permission !== 'granted') return;
  const known = new Set(needs.peek().map((need) => `${keyOf(need)} ${need.reason}`));
  const [, owner, id] = place.peek().parts;
  for (const need of found) {
    const isShown =
      document.visibilityState === 'visible' && need.owner === owner && need.id === id;
    if (known.has(`${keyOf(need)} ${need.reason}`) || isShown) continue;
    const title = `${visibleText(need.name ?? need.command).slice(0, 60)} ${needWords(need).word}`;
    const shown = new Notification(title, { body: visibleText(need.text), tag: keyOf(need) });
    shown.addEventListener('click', () => {
      window.focus();
      location.hash = `#/p/${encodeURIComponent(need.owner)}/${encodeURIComponent(need.id)}`;
    });
  }
}
