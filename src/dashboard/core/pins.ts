// Processes that a person has pinned: first in the list, and opened by the keys 1 to 9. Kept in this browser.

import { effect, signal } from '@preact/signals';
import { keyOf } from './processes.ts';

const NAME = 'holdfast.pins';
const MOST = 9;

export const pins = signal<readonly string[]>(stored());

effect(() => {
  if (pins.value.length === 0) localStorage.removeItem(NAME);
  else localStorage.setItem(NAME, JSON.stringify(pins.value));
});

interface Named {
  readonly owner: string;
  readonly id: string;
}

/** The number of its key, from 1; 0 when it is not pinned. */
export function pinOf(process: Named): number {
  return pins.value.length === 0 ? 0 : pins.value.indexOf(keyOf(process)) + 1;
}

/** A tenth one takes the place of the first. */
export function togglePin(process: Named): void {
  const key = keyOf(process);
  const others = pins.value.filter((each) => each !== key);
  pins.value = pins.value.includes(key) ? others : [...others, key].slice(-MOST);
}

export function pinned<T extends Named>(number: number, processes: readonly T[]): T | undefined {
  const key = pins.value[number - 1];
  return key === undefined ? undefined : processes.find((each) => keyOf(each) === key);
}

/** Each part in its order. */
export function pinnedFirst<T extends Named>(processes: readonly T[]): readonly T[] {
  if (pins.value.length === 0) return processes;
  const found = pins.value.flatMap((_key, index) => pinned(index + 1, processes) ?? []);
  return [...found, ...processes.filter((each) => pinOf(each) === 0)];
}

function stored(): string[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(NAME) ?? '[]');
    return Array.isArray(found) ? found.filter((each) => typeof each === 'string') : [];
  } catch {
    // Something else wrote it: there are no pins then.
    return [];
  }
}
