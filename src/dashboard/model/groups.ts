// The list as a tree: processes under their owner and chat, each group with what its processes are doing.

import type { ProcessInfo } from '../../protocol/process.ts';
import { hasFailed } from './state-words.ts';

export interface GroupRow {
  readonly key: string;
  readonly owner: string;
  readonly chat: string | undefined;
  /** How many need a person. */
  readonly needing: number;
  readonly running: number;
  readonly failed: number;
  readonly ended: number;
  readonly isFolded: boolean;
}

export type ListRow =
  | { readonly process: ProcessInfo; readonly group?: undefined; readonly isNested: boolean }
  | { readonly group: GroupRow; readonly process?: undefined };

export function flatRows(processes: readonly ProcessInfo[]): ListRow[] {
  return processes.map((process) => ({ process, isNested: false }));
}

/** In the order of their first process: groups with running ones come first. */
export function groupedRows(
  processes: readonly ProcessInfo[],
  folded: ReadonlySet<string>,
  needs: (process: ProcessInfo) => unknown,
): ListRow[] {
  const groups = new Map<string, ProcessInfo[]>();
  for (const process of processes) {
    const key = groupKey(process);
    const members = groups.get(key);
    if (members) members.push(process);
    else groups.set(key, [process]);
  }
  return Array.from(groups).flatMap(([key, members]): ListRow[] => {
    const isFolded = folded.has(key);
    const [first] = members;
    const failed = members.filter(hasFailed).length;
    const running = members.filter(({ outcome }) => !outcome).length;
    const ended = members.length - running;
    const group = {
      key,
      owner: first?.owner ?? '',
      chat: first?.labels?.['chat'],
      needing: members.filter(needs).length,
      running,
      failed,
      ended,
      isFolded,
    };
    const nested = members.map((process) => ({ process, isNested: true }));
    return [{ group }, ...(isFolded ? [] : nested)];
  });
}

export function groupKey({ owner, labels }: ProcessInfo): string {
  return JSON.stringify([owner, labels?.['chat'] ?? '']);
}
