// The page's copy of the list of processes, kept current by the changes that the server tells.

import { computed, signal } from '@preact/signals';
import type { ProcessInfo } from '../../protocol/process.ts';
import { Problem } from './http.ts';
import { problemOf, subscribe, type Message } from './watch.ts';

interface Rows extends Message {
  readonly epoch: string;
  readonly version: number;
  readonly reset: boolean;
  readonly more: boolean;
  readonly changed: readonly ProcessInfo[];
  readonly removed: readonly { readonly owner: string; readonly id: string }[];
}

const known = new Map<string, ProcessInfo>();
/** Counts changes of the map above. */
const changes = signal(0);
/** The whole list has come at least once. */
export const listLoaded = signal(false);
export const listProblem = signal<Problem | undefined>(undefined);
let cursor: { readonly epoch: string; readonly after: number } | undefined;

export function keyOf({ owner, id }: { readonly owner: string; readonly id: string }): string {
  return `${encodeURIComponent(owner)}/${id}`;
}

/** Running ones first, then the newest first. */
export const processes = computed<readonly ProcessInfo[]>(() => {
  void changes.value;
  return Array.from(known.values()).sort(
    (a, b) =>
      Number(a.outcome !== undefined) - Number(b.outcome !== undefined) ||
      b.startedAtMs - a.startedAtMs ||
      (a.id < b.id ? -1 : 1),
  );
});

export function processOf(owner: string, id: string): ProcessInfo | undefined {
  void changes.value;
  return known.get(keyOf({ owner, id }));
}

export function followProcesses(): () => void {
  return subscribe({
    begin: () => ({ type: 'list', ...cursor }),
    onMessage: (message) => {
      if (message.type === 'rows') take(message as Rows);
      if (message.type === 'problem') listProblem.value = problemOf(message);
    },
  });
}

function take({ epoch, version, reset, more, changed, removed }: Rows): void {
  if (reset) known.clear();
  for (const row of changed) known.set(keyOf(row), row);
  for (const row of removed) known.delete(keyOf(row));
  cursor = { epoch, after: version };
  changes.value += 1;
  if (!more) listLoaded.value = true;
}
