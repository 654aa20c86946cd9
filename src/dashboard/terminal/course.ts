// The course of a terminal: when it printed how much, its runs and marks. Asked for again while it changes.

import { useSignal, type ReadonlySignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { TerminalRunInfo, Timeline } from '../../protocol/dashboard/timeline.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { ask } from '../core/http.ts';

export interface Course extends Timeline {
  readonly runs: readonly TerminalRunInfo[];
}

const REFRESH_MS = 3000;

export function useCourse({ owner, id, seq }: ProcessInfo): ReadonlySignal<Course | undefined> {
  const course = useSignal<Course | undefined>(undefined);
  useEffect(() => {
    if (course.value?.seq === seq) return undefined;
    const load = (): void => {
      const of = encodeURIComponent(id);
      Promise.all([
        ask<Timeline>('GET', `/v1/processes/${of}/timeline`, { query: { owner } }),
        ask<{ runs: TerminalRunInfo[] }>('GET', `/v1/terminals/${of}/runs`, { query: { owner } }),
      ]).then(
        ([timeline, { runs }]) => {
          course.value = { ...timeline, runs };
        },
        // The header says when the server cannot be reached; the old course stays.
        () => undefined,
      );
    };
    const timer = setTimeout(load, course.value ? REFRESH_MS : 0);
    return () => clearTimeout(timer);
  }, [owner, id, seq, course.value]);
  return course;
}
