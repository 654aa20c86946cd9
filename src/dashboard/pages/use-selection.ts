// What the keys of the list do with its chosen row, and with the rows that were selected: stop, compare, pin, take over.

import { useSignal } from '@preact/signals';
import type { ProcessInfo } from '../../protocol/process.ts';
import { askToStop } from '../acts/stop.tsx';
import { askToStopMany } from '../acts/stop-many.tsx';
import { useKeys } from '../core/keyboard.ts';
import { pinned, togglePin } from '../core/pins.ts';
import { keyOf } from '../core/processes.ts';
import { go, linkTo } from '../core/route.ts';
import { openAndTake } from '../core/take-over.ts';
import { groupKey, type ListRow } from '../model/groups.ts';
import { processLink } from '../parts/process-list.tsx';

interface Listed {
  readonly all: readonly ProcessInfo[];
  /** What the filter leaves. */
  readonly found: readonly ProcessInfo[];
  /** The row that is chosen. */
  readonly chosen: ListRow | undefined;
}

export interface Selection {
  readonly keys: ReadonlySet<string>;
  readonly processes: readonly ProcessInfo[];
  readonly stop: () => void;
  readonly compare: () => void;
  readonly clear: () => void;
}

export function useSelection({ all, found, chosen }: Listed): Selection {
  const selected = useSignal<ReadonlySet<string>>(new Set());
  const processes = all.filter((each) => selected.value.has(keyOf(each)));
  const row = chosen?.process;
  const group = chosen?.group;
  const stop = (): void => {
    if (processes.length > 0) askToStopMany(processes);
    else if (group) askToStopMany(found.filter((each) => groupKey(each) === group.key));
    else if (row) askToStop(row);
  };
  const compare = (): void => {
    const [one, other] = processes;
    if (one && other && processes.length === 2) go(comparing(one, other));
  };
  useKeys([
    { keys: 'x', label: group || processes.length > 0 ? 'stop all' : 'stop', run: stop },
    {
      keys: 'v',
      label: 'select',
      run: () => row && (selected.value = toggled(selected.value, keyOf(row))),
    },
    ...(processes.length === 2 ? [{ keys: 'c', label: 'compare', run: compare }] : []),
    ...(row && !row.outcome && row.streams === 'pty'
      ? [{ keys: 't', label: 'take over', run: () => openAndTake(row) }]
      : []),
    { keys: 'p', label: 'pin', run: () => row && togglePin(row) },
    ...Array.from({ length: 9 }, (_each, index) => ({
      keys: String(index + 1),
      run: () => {
        const target = pinned(index + 1, all);
        if (target) go(processLink(target));
      },
    })),
  ]);
  const clear = (): void => {
    selected.value = new Set();
  };
  return { keys: selected.value, processes, stop, compare, clear };
}

export function toggled(set: ReadonlySet<string>, key: string): ReadonlySet<string> {
  const next = new Set(set);
  if (!next.delete(key)) next.add(key);
  return next;
}

/** The earlier one on the left. */
function comparing(one: ProcessInfo, other: ProcessInfo): string {
  const [left, right] = one.startedAtMs <= other.startedAtMs ? [one, other] : [other, one];
  return linkTo(['compare', left.owner, left.id, right.owner, right.id]);
}
