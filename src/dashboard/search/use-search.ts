// A search over all processes that runs while its page is shown.

import { useSignal, type Signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { SearchAllLine } from '../../protocol/dashboard/search-all.ts';
import { askLines, Problem } from '../core/http.ts';

export type Hits = Extract<SearchAllLine, { type: 'hits' }>;

export interface Progress {
  readonly searched: number;
  readonly total: number;
  readonly isDone: boolean;
  /** Where older processes begin. */
  readonly next?: number;
}

export interface Search {
  readonly found: Signal<readonly Hits[]>;
  readonly progress: Signal<Progress | undefined>;
  readonly problem: Signal<Problem | undefined>;
  /** Goes on with older processes. */
  readonly goOn: () => void;
}

export function useSearch(pattern: string, isRegex: boolean): Search {
  const found = useSignal<readonly Hits[]>([]);
  const progress = useSignal<Progress | undefined>(undefined);
  const problem = useSignal<Problem | undefined>(undefined);
  const before = useSignal<number | undefined>(undefined);
  useEffect(() => {
    before.value = undefined;
    found.value = [];
  }, [pattern, isRegex]);
  useEffect(() => {
    progress.value = undefined;
    problem.value = undefined;
    if (pattern === '') return undefined;
    const stop = new AbortController();
    const kind = isRegex ? 'regex' : 'text';
    const query = { pattern, kind, ignoreCase: true, before: before.value };
    progress.value = { searched: 0, total: 0, isDone: false };
    askLines('/v1/search', { query, signal: stop.signal }, (each) => {
      const line = each as SearchAllLine;
      if (line.type === 'hits') found.value = [...found.value, line];
      else progress.value = { isDone: line.type === 'end', ...line };
    }).catch((error: unknown) => {
      if (!stop.signal.aborted) problem.value = error as Problem;
    });
    return () => stop.abort();
  }, [pattern, isRegex, before.value]);
  const goOn = (): void => {
    before.value = progress.value?.next;
  };
  return { found, progress, problem, goOn };
}
